import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Provider;
import java.security.Security;
import java.security.cert.Certificate;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.KeyManagerFactory;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.est.CACertsResponse;
import org.bouncycastle.est.CSRRequestResponse;
import org.bouncycastle.est.ESTAuth;
import org.bouncycastle.est.ESTService;
import org.bouncycastle.est.EnrollmentResponse;
import org.bouncycastle.est.HttpAuth;
import org.bouncycastle.est.jcajce.ChannelBindingProvider;
import org.bouncycastle.est.jcajce.JcaJceUtils;
import org.bouncycastle.est.jcajce.JsseDefaultHostnameAuthorizer;
import org.bouncycastle.est.jcajce.JsseESTServiceBuilder;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.PKCS8Generator;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;
import org.bouncycastle.pkcs.PKCS10CertificationRequestBuilder;
import org.bouncycastle.pkcs.jcajce.JcaPKCS10CertificationRequestBuilder;
import org.bouncycastle.util.Selector;
import org.bouncycastle.util.Store;

/**
 * A command-line EST client on Bouncy Castle's org.bouncycastle.est, for the interoperability tests.
 *
 * <pre>
 * EstClient cacerts        server=HOST:PORT ca=root.pem out=chain.pem [label=L]
 * EstClient csrattrs       server=HOST:PORT ca=root.pem
 * EstClient simpleenroll   server=… ca=… subject=CN=x newkey=key.pem out=cert.pem user=U password=P | cert=C key=K
 * EstClient simplereenroll server=… ca=… subject=CN=x newkey=key.pem out=cert.pem cert=C key=K
 * EstClient popenroll      server=… ca=… subject=CN=x newkey=key.pem out=cert.pem user=U password=P | cert=C key=K
 * EstClient serverkeygen   server=… ca=… subject=CN=x newkey=key.pem out=cert.pem user=U password=P | cert=C key=K
 * </pre>
 *
 * newkey is written; with serverkeygen it holds the key that the server made. PEM everywhere. popenroll puts the channel
 * binding into the request (RFC 7030 §3.5); it needs bctls.jar, since the JDK's TLS does not show its tls-unique.
 */
public final class EstClient {
  private static final int TIMEOUT_MILLIS = 60_000;
  private static final int MAX_POLLS = 100;

  private final Map<String, String> options;

  private EstClient(Map<String, String> options) {
    this.options = options;
  }

  public static void main(String[] args) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (int i = 1; i < args.length; i++) {
      String[] pair = args[i].split("=", 2);
      options.put(pair[0], pair[1]);
    }
    // Last in the list: TLS stays the JDK's; Bouncy Castle's path validation asks for its own provider by name.
    Security.addProvider(new BouncyCastleProvider());
    EstClient client = new EstClient(options);
    switch (args[0]) {
      case "cacerts" -> client.cacerts();
      case "csrattrs" -> client.csrattrs();
      case "popenroll" -> client.popEnroll();
      case "simpleenroll" -> client.enroll(false);
      case "simplereenroll" -> client.enroll(true);
      case "serverkeygen" -> client.serverkeygen();
      default -> throw new IllegalArgumentException("unknown operation " + args[0]);
    }
  }

  private void cacerts() throws Exception {
    CACertsResponse answer = service().getCACerts();
    if (!answer.isTrusted()) throw new IllegalStateException("the TLS session was not trusted");
    write("out", (Object[]) ESTService.storeToArray(answer.getCertificateStore()));
  }

  private void csrattrs() throws Exception {
    CSRRequestResponse answer = service().getCSRAttributes();
    if (!answer.hasAttributesResponse()) {
      System.out.println("none");
      return;
    }
    answer.getAttributesResponse().getRequirements().forEach(System.out::println);
  }

  private void enroll(boolean again) throws Exception {
    ESTService service = service();
    KeyPair pair = newKeyPair();
    EnrollmentResponse answer = service.simpleEnroll(again, request(pair), auth());
    answer = poll(service, answer);
    writeKey(PrivateKeyInfo.getInstance(pair.getPrivate().getEncoded()));
    write("out", single(answer.getStore()));
  }

  private void popEnroll() throws Exception {
    TlsUnique binding = new TlsUnique();
    ESTService service = builder().withProvider(bouncyCastleTls()).withChannelBindingProvider(binding).build();
    KeyPair pair = newKeyPair();
    ContentSigner signer = new JcaContentSignerBuilder("SHA256withECDSA").build(pair.getPrivate());
    EnrollmentResponse answer = service.simpleEnrollPoP(false, requestBuilder(pair), signer, auth());
    if (!binding.used) throw new IllegalStateException("no channel binding was put into the request");
    answer = poll(service, answer);
    writeKey(PrivateKeyInfo.getInstance(pair.getPrivate().getEncoded()));
    write("out", single(answer.getStore()));
  }

  /** By reflection, so that the other operations do without bctls.jar. */
  private static Provider bouncyCastleTls() throws ReflectiveOperationException {
    Class<?> provider = Class.forName("org.bouncycastle.jsse.provider.BouncyCastleJsseProvider");
    return (Provider) provider.getDeclaredConstructor().newInstance();
  }

  /** tls-unique (RFC 5929) of a connection of Bouncy Castle's TLS. */
  private static final class TlsUnique implements ChannelBindingProvider {
    private boolean used;

    @Override
    public boolean canAccessChannelBinding(Socket socket) {
      return true;
    }

    @Override
    public byte[] getChannelBinding(Socket socket, String binding) {
      try {
        Object connection = Class.forName("org.bouncycastle.jsse.BCSSLSocket").getMethod("getConnection").invoke(socket);
        byte[] value =
            (byte[])
                Class.forName("org.bouncycastle.jsse.BCSSLConnection")
                    .getMethod("getChannelBinding", String.class)
                    .invoke(connection, binding);
        used = value != null;
        return value;
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("no channel binding: is bctls.jar on the class path?", e);
      }
    }
  }

  private void serverkeygen() throws Exception {
    ESTService service = service();
    EnrollmentResponse answer = poll(service, service.simpleEnrollWithServersideCreation(request(newKeyPair()), auth()));
    writeKey(answer.getPrivateKeyInfo());
    write("out", single(answer.getStore()));
  }

  /** Repeats a request that was answered 202 when the server says so. */
  private static EnrollmentResponse poll(ESTService service, EnrollmentResponse first) throws Exception {
    EnrollmentResponse answer = first;
    for (int i = 0; i < MAX_POLLS && !answer.isCompleted(); i++) {
      Thread.sleep(Math.max(0, answer.getNotBefore() - System.currentTimeMillis()) + 50);
      answer = service.simpleEnroll(answer);
    }
    if (!answer.isCompleted()) throw new IllegalStateException("still pending after " + MAX_POLLS + " polls");
    return answer;
  }

  private ESTService service() throws Exception {
    return builder().build();
  }

  private JsseESTServiceBuilder builder() throws Exception {
    X509Certificate root = certificate("ca");
    JsseESTServiceBuilder builder =
        new JsseESTServiceBuilder(
            option("server"),
            JcaJceUtils.getCertPathTrustManager(Set.of(new TrustAnchor(root, null)), null));
    builder.withTimeout(TIMEOUT_MILLIS);
    builder.withHostNameAuthorizer(new JsseDefaultHostnameAuthorizer(Collections.emptySet()));
    if (options.containsKey("tls")) builder.withTLSVersion(option("tls"));
    if (options.containsKey("label")) builder.withLabel(option("label"));
    if (options.containsKey("cert")) builder.withKeyManagers(keyManagers().getKeyManagers());
    return builder;
  }

  private KeyManagerFactory keyManagers() throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setKeyEntry("client", privateKey("key"), new char[0], new Certificate[] {certificate("cert")});
    return JcaJceUtils.createKeyManagerFactory(KeyManagerFactory.getDefaultAlgorithm(), null, store, new char[0]);
  }

  /** HTTP Basic where a password was given; it is sent once the server has asked for it. */
  private ESTAuth auth() {
    return options.containsKey("user") ? new HttpAuth(option("user"), option("password").toCharArray()) : null;
  }

  private PKCS10CertificationRequest request(KeyPair pair) throws Exception {
    return requestBuilder(pair).build(new JcaContentSignerBuilder("SHA256withECDSA").build(pair.getPrivate()));
  }

  private PKCS10CertificationRequestBuilder requestBuilder(KeyPair pair) {
    return new JcaPKCS10CertificationRequestBuilder(new X500Name(option("subject")), pair.getPublic());
  }

  private static KeyPair newKeyPair() throws GeneralSecurityException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  private static X509CertificateHolder single(Store<X509CertificateHolder> store) {
    Selector<X509CertificateHolder> all = null;
    X509CertificateHolder[] certificates = ESTService.storeToArray(store, all);
    if (certificates.length != 1) throw new IllegalStateException(certificates.length + " certificates in the answer");
    return certificates[0];
  }

  private String option(String name) {
    String value = options.get(name);
    if (value == null) throw new IllegalArgumentException("missing " + name + "=");
    return value;
  }

  private X509Certificate certificate(String name) throws Exception {
    return new JcaX509CertificateConverter().getCertificate((X509CertificateHolder) read(name));
  }

  private PrivateKey privateKey(String name) throws IOException {
    return new JcaPEMKeyConverter().getPrivateKey((PrivateKeyInfo) read(name));
  }

  private Object read(String name) throws IOException {
    try (Reader reader = Files.newBufferedReader(Path.of(option(name)));
        PEMParser parser = new PEMParser(reader)) {
      return parser.readObject();
    }
  }

  private void writeKey(PrivateKeyInfo key) throws IOException {
    write("newkey", new PKCS8Generator(key, null));
  }

  private void write(String name, Object... objects) throws IOException {
    try (Writer writer = Files.newBufferedWriter(Path.of(option(name)));
        JcaPEMWriter pem = new JcaPEMWriter(writer)) {
      for (Object object : objects) pem.writeObject(object);
    }
  }
}
