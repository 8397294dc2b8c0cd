import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1Encoding;
import org.bouncycastle.asn1.ASN1Object;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.cmc.OtherMsg;
import org.bouncycastle.asn1.cmc.PKIData;
import org.bouncycastle.asn1.cmc.TaggedAttribute;
import org.bouncycastle.asn1.cmc.TaggedContentInfo;
import org.bouncycastle.asn1.cmc.TaggedRequest;

/**
 * Reads CMC structures with Bouncy Castle's classes and writes them again: {@code CmcStructures FOLDER}. For each file
 * {@code Class-name.der}, {@code Class} of org.bouncycastle.asn1.cmc or .crmf makes {@code Class-name.out}.
 */
public final class CmcStructures {
  private CmcStructures() {}

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.der")) {
      for (Path file : files) {
        String name = file.getFileName().toString();
        ASN1Encodable value = parse(name.substring(0, name.indexOf('-')), Files.readAllBytes(file));
        Path out = folder.resolve(name.replace(".der", ".out"));
        Files.write(out, value.toASN1Primitive().getEncoded(ASN1Encoding.DER));
      }
    }
  }

  private static ASN1Encodable parse(String type, byte[] der) throws Exception {
    ASN1Primitive primitive = ASN1Primitive.fromByteArray(der);
    ASN1Object object = (ASN1Object) find(type).getMethod("getInstance", Object.class).invoke(null, primitive);
    return object instanceof PKIData data ? rebuilt(data) : object;
  }

  private static Class<?> find(String type) throws ClassNotFoundException {
    try {
      return Class.forName("org.bouncycastle.asn1.cmc." + type);
    } catch (ClassNotFoundException e) {
      return Class.forName("org.bouncycastle.asn1.crmf." + type);
    }
  }

  /** A new PKIData of parts that each were written and read once more: PKIData itself keeps what it was read from. */
  private static PKIData rebuilt(PKIData data) throws IOException {
    return new PKIData(
        each(data.getControlSequence(), TaggedAttribute::getInstance).toArray(TaggedAttribute[]::new),
        each(data.getReqSequence(), TaggedRequest::getInstance).toArray(TaggedRequest[]::new),
        each(data.getCmsSequence(), TaggedContentInfo::getInstance).toArray(TaggedContentInfo[]::new),
        each(data.getOtherMsgSequence(), OtherMsg::getInstance).toArray(OtherMsg[]::new));
  }

  private static <T extends ASN1Object> List<T> each(T[] parts, Function<Object, T> read) throws IOException {
    List<T> again = new ArrayList<>();
    for (T part : parts) again.add(read.apply(ASN1Primitive.fromByteArray(part.getEncoded(ASN1Encoding.DER))));
    return again;
  }
}
