import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Security;
import java.security.cert.CertificateFactory;
import java.security.cert.X509CRL;
import java.security.cert.X509Certificate;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.pkcs.jcajce.JcaPKCS10CertificationRequestBuilder;

/**
 * ML-DSA by Bouncy Castle: `request ALGORITHM NAME CSR` writes a request with a key of its own (DER); `verify CERTIFICATE ISSUER ROOT CRL`
 * checks the signatures of a certificate, its issuer's and a CRL; `cms MESSAGE CERTIFICATE` those of SignedData. It prints `ok`.
 */
public final class MlDsa {
  public static void main(String[] args) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    switch (args[0]) {
      case "request" -> request(args[1], args[2], Path.of(args[3]));
      case "verify" -> verify(args);
      case "cms" -> cms(Path.of(args[1]), Path.of(args[2]));
      default -> throw new IllegalArgumentException(args[0]);
    }
    System.out.println("ok");
  }

  private static void request(String algorithm, String name, Path file) throws Exception {
    KeyPair keys = KeyPairGenerator.getInstance(algorithm, "BC").generateKeyPair();
    var builder = new JcaPKCS10CertificationRequestBuilder(new X500Name("CN=" + name), keys.getPublic());
    var signer = new JcaContentSignerBuilder(algorithm).setProvider("BC").build(keys.getPrivate());
    Files.write(file, builder.build(signer).getEncoded());
  }

  private static void verify(String[] args) throws Exception {
    X509Certificate issuer = certificate(Path.of(args[2]));
    certificate(Path.of(args[1])).verify(issuer.getPublicKey(), "BC");
    issuer.verify(certificate(Path.of(args[3])).getPublicKey(), "BC");
    CertificateFactory factory = CertificateFactory.getInstance("X.509", "BC");
    try (var in = Files.newInputStream(Path.of(args[4]))) {
      ((X509CRL) factory.generateCRL(in)).verify(issuer.getPublicKey(), "BC");
    }
  }

  private static void cms(Path message, Path signer) throws Exception {
    CMSSignedData data = new CMSSignedData(Files.readAllBytes(message));
    var verifier = new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC").build(certificate(signer));
    for (SignerInformation info : data.getSignerInfos())
      if (!info.verify(verifier)) throw new SecurityException("the signature does not verify");
  }

  private static X509Certificate certificate(Path file) throws Exception {
    CertificateFactory factory = CertificateFactory.getInstance("X.509", "BC");
    try (var in = Files.newInputStream(file)) {
      return (X509Certificate) factory.generateCertificate(in);
    }
  }
}
