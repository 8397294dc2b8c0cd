import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

/**
 * Runs the programs of this folder one after the other in one process. A line has a class and its arguments, each word in
 * base64 after a dot; the answer is "ok" or "failed", and what the program printed.
 */
public final class Programs {
  private Programs() {}

  public static void main(String[] none) throws Exception {
    PrintStream answers = System.out;
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words =
          Arrays.stream(line.split(" "))
              .map((word) -> new String(Base64.getDecoder().decode(word.substring(1)), StandardCharsets.UTF_8))
              .toArray(String[]::new);
      ByteArrayOutputStream printed = new ByteArrayOutputStream();
      System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
      boolean isDone = true;
      try {
        Object arguments = Arrays.copyOfRange(words, 1, words.length);
        Class.forName(words[0]).getMethod("main", String[].class).invoke(null, arguments);
      } catch (InvocationTargetException failure) {
        isDone = false;
        failure.getCause().printStackTrace(System.out);
      }
      answers.println((isDone ? "ok " : "failed ") + Base64.getEncoder().encodeToString(printed.toByteArray()));
    }
  }
}
