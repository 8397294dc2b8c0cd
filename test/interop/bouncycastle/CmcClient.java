import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.Security;
import java.security.spec.ECGenParameterSpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.bouncycastle.asn1.ASN1Encodable;
import org.bouncycastle.asn1.ASN1Encoding;
import org.bouncycastle.asn1.ASN1GeneralizedTime;
import org.bouncycastle.asn1.ASN1Integer;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.ASN1OctetString;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.DEROctetString;
import org.bouncycastle.asn1.DERSequence;
import org.bouncycastle.asn1.DERSet;
import org.bouncycastle.asn1.DERUTF8String;
import org.bouncycastle.asn1.cmc.BodyPartID;
import org.bouncycastle.asn1.cmc.BodyPartList;
import org.bouncycastle.asn1.cmc.CMCObjectIdentifiers;
import org.bouncycastle.asn1.cmc.CMCStatusInfoV2;
import org.bouncycastle.asn1.cmc.CertificationRequest;
import org.bouncycastle.asn1.cmc.IdentityProofV2;
import org.bouncycastle.asn1.cmc.OtherMsg;
import org.bouncycastle.asn1.cmc.OtherStatusInfo;
import org.bouncycastle.asn1.cmc.PKIData;
import org.bouncycastle.asn1.cmc.PKIResponse;
import org.bouncycastle.asn1.cmc.PendInfo;
import org.bouncycastle.asn1.cmc.PopLinkWitnessV2;
import org.bouncycastle.asn1.cmc.RevokeRequest;
import org.bouncycastle.asn1.cmc.TaggedAttribute;
import org.bouncycastle.asn1.cmc.TaggedCertificationRequest;
import org.bouncycastle.asn1.cmc.TaggedContentInfo;
import org.bouncycastle.asn1.cmc.TaggedRequest;
import org.bouncycastle.asn1.cms.ContentInfo;
import org.bouncycastle.asn1.cms.IssuerAndSerialNumber;
import org.bouncycastle.asn1.crmf.CertReqMsg;
import org.bouncycastle.asn1.nist.NISTObjectIdentifiers;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.CRLReason;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.ExtensionsGenerator;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.SubjectKeyIdentifier;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.crmf.Control;
import org.bouncycastle.cert.crmf.jcajce.JcaCertificateRequestMessageBuilder;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.cms.CMSAlgorithm;
import org.bouncycastle.cms.CMSAuthenticatedData;
import org.bouncycastle.cms.CMSAuthenticatedDataGenerator;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.CMSSignedDataGenerator;
import org.bouncycastle.cms.CMSTypedData;
import org.bouncycastle.cms.PasswordRecipient;
import org.bouncycastle.cms.RecipientInformation;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.cms.jcajce.JceCMSMacCalculatorBuilder;
import org.bouncycastle.cms.jcajce.JcePasswordAuthenticatedRecipient;
import org.bouncycastle.cms.jcajce.JcePasswordRecipientInfoGenerator;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.PKCS8Generator;
import org.bouncycastle.openssl.jcajce.JcaPEMKeyConverter;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;
import org.bouncycastle.pkcs.PKCS10CertificationRequestBuilder;
import org.bouncycastle.pkcs.jcajce.JcaPKCS10CertificationRequestBuilder;
import org.bouncycastle.util.Store;
import org.bouncycastle.util.encoders.Hex;

/**
 * Makes full PKI requests and reads full PKI responses with Bouncy Castle, for the interoperability tests.
 * Longer than other files: one program, which is compiled and started once for all of them.
 *
 * <pre>
 * CmcClient enroll   subject=CN=a[|CN=b…] newkey=PREFIX out=FILE [dns=a.example] [format=crmf] [keytype=rsa] [bad=N]
 * CmcClient revoke  target=CERT [reason=1] [revocation-secret=S] out=FILE
 * CmcClient query   token=HEX out=FILE
 * CmcClient confirm target=CERT out=FILE
 * CmcClient batch   in=FILE[|FILE…] out=FILE        (each a full PKI request: batchRequests)
 * CmcClient read    in=FILE [out=CERTS] [secret=S]  (a full PKI response; prints name=value lines)
 * </pre>
 *
 * Several commands go into one run with "--" between them. The message is signed with cert= and key=; without them,
 * enroll signs with the key of the first request and the others do not sign at all. secret= and identification= add
 * identityProofV2, popLinkRandom and popLinkWitnessV2; with mac=yes they authenticate the message in place of
 * identityProofV2 and a signature. bad=N breaks the signature of the Nth request. transaction= and nonce= (hex) replace random values. The
 * Nth new key is written to PREFIX-N.pem. Messages are DER or BER files, certificates and keys PEM.
 */
public final class CmcClient {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final AlgorithmIdentifier SHA256 = new AlgorithmIdentifier(NISTObjectIdentifiers.id_sha256);
  private static final AlgorithmIdentifier HMAC_SHA256 =
      new AlgorithmIdentifier(PKCSObjectIdentifiers.id_hmacWithSHA256);
  private static final int ITERATIONS = 20_000;

  private final Map<String, String> options;
  private final List<TaggedAttribute> controls = new ArrayList<>();
  private final List<TaggedRequest> requests = new ArrayList<>();
  private final List<TaggedContentInfo> contents = new ArrayList<>();
  private long lastBodyPart = 0;

  private CmcClient(Map<String, String> options) {
    this.options = options;
  }

  public static void main(String[] args) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    List<String> command = new ArrayList<>();
    for (String argument : args) {
      if (argument.equals("--")) {
        run(command);
        command.clear();
      } else command.add(argument);
    }
    run(command);
  }

  private static void run(List<String> command) throws Exception {
    Map<String, String> options = new HashMap<>();
    for (String argument : command.subList(1, command.size())) {
      String[] pair = argument.split("=", 2);
      options.put(pair[0], pair[1]);
    }
    CmcClient client = new CmcClient(options);
    switch (command.get(0)) {
      case "enroll" -> client.enroll();
      case "revoke" -> client.revoke();
      case "query" -> client.query();
      case "confirm" -> client.confirm();
      case "batch" -> client.batch();
      case "read" -> client.read();
      default -> throw new IllegalArgumentException("unknown command " + command.get(0));
    }
  }

  // --- requests ----------------------------------------------------------------------------------------------

  private void enroll() throws Exception {
    byte[] random = new byte[64];
    RANDOM.nextBytes(random);
    KeyPair first = null;
    int number = 0;
    for (String subject : option("subject").split("\\|")) {
      number++;
      KeyPair pair = newKeyPair();
      if (first == null) first = pair;
      requests.add(request(new X500Name(subject), pair, random, String.valueOf(number).equals(options.get("bad"))));
      write(Path.of(option("newkey") + "-" + number + ".pem"), new PKCS8Generator(privateKeyInfo(pair), null));
    }
    if (options.containsKey("secret")) {
      control(CMCObjectIdentifiers.id_cmc_popLinkRandom, new DEROctetString(random));
      if (!options.containsKey("mac")) identityProof();
    }
    finish(first);
  }

  private void identityProof() throws Exception {
    if (options.containsKey("identification"))
      control(CMCObjectIdentifiers.id_cmc_identification, new DERUTF8String(option("identification")));
    byte[] reqSequence = new DERSequence(requests.toArray(ASN1Encodable[]::new)).getEncoded(ASN1Encoding.DER);
    byte[] witness = mac(option("secret") + options.getOrDefault("identification", ""), reqSequence);
    control(CMCObjectIdentifiers.id_cmc_identityProofV2, new IdentityProofV2(SHA256, HMAC_SHA256, witness));
  }

  private void revoke() throws Exception {
    X509CertificateHolder target = certificate("target");
    String secret = options.get("revocation-secret");
    control(
        CMCObjectIdentifiers.id_cmc_revokeRequest,
        new RevokeRequest(
            target.getIssuer(),
            new ASN1Integer(target.getSerialNumber()),
            CRLReason.lookup(Integer.parseInt(options.getOrDefault("reason", "1"))),
            null,
            secret == null ? null : new DEROctetString(utf8(secret)),
            new DERUTF8String("by Bouncy Castle")));
    finish(null);
  }

  private void query() throws Exception {
    control(CMCObjectIdentifiers.id_cmc_queryPending, new DEROctetString(Hex.decode(option("token"))));
    finish(null);
  }

  private void confirm() throws Exception {
    X509CertificateHolder target = certificate("target");
    control(
        CMCObjectIdentifiers.id_cmc_confirmCertAcceptance,
        new IssuerAndSerialNumber(target.getIssuer(), target.getSerialNumber()));
    finish(null);
  }

  private void batch() throws Exception {
    List<BodyPartID> ids = new ArrayList<>();
    for (String file : option("in").split("\\|")) {
      BodyPartID id = nextBodyPart();
      ids.add(id);
      contents.add(new TaggedContentInfo(id, ContentInfo.getInstance(Files.readAllBytes(Path.of(file)))));
    }
    control(CMCObjectIdentifiers.id_cmc_batchRequests, new BodyPartList(ids.toArray(BodyPartID[]::new)));
    finish(null);
  }

  /** Adds transactionId and senderNonce, protects the message as the options say, and writes it. */
  private void finish(KeyPair requested) throws Exception {
    control(CMCObjectIdentifiers.id_cmc_transactionId, new ASN1Integer(new BigInteger(1, bytes("transaction", 8))));
    control(CMCObjectIdentifiers.id_cmc_senderNonce, new DEROctetString(bytes("nonce", 16)));
    if (options.containsKey("mac"))
      control(CMCObjectIdentifiers.id_cmc_identification, new DERUTF8String(option("identification")));
    PKIData data =
        new PKIData(
            controls.toArray(TaggedAttribute[]::new),
            requests.toArray(TaggedRequest[]::new),
            contents.toArray(TaggedContentInfo[]::new),
            new OtherMsg[0]);
    CMSTypedData content =
        new CMSProcessableByteArray(CMCObjectIdentifiers.id_cct_PKIData, data.getEncoded(ASN1Encoding.DER));
    byte[] message = options.containsKey("mac") ? authenticated(content) : signed(content, requested);
    Files.write(Path.of(option("out")), message);
  }

  private byte[] signed(CMSTypedData content, KeyPair requested) throws Exception {
    CMSSignedDataGenerator generator = new CMSSignedDataGenerator();
    JcaSignerInfoGeneratorBuilder builder =
        new JcaSignerInfoGeneratorBuilder(new JcaDigestCalculatorProviderBuilder().build());
    if (options.containsKey("cert")) {
      X509CertificateHolder certificate = certificate("cert");
      generator.addSignerInfoGenerator(builder.build(signer(privateKey("key")), certificate));
      generator.addCertificate(certificate);
    } else if (requested != null) {
      byte[] identifier = keyIdentifier(requested).getKeyIdentifier();
      generator.addSignerInfoGenerator(builder.build(signer(requested.getPrivate()), identifier));
    }
    return generator.generate(content, true).getEncoded();
  }

  private byte[] authenticated(CMSTypedData content) throws Exception {
    CMSAuthenticatedDataGenerator generator = new CMSAuthenticatedDataGenerator();
    byte[] salt = new byte[16];
    RANDOM.nextBytes(salt);
    generator.addRecipientInfoGenerator(
        new JcePasswordRecipientInfoGenerator(CMSAlgorithm.AES256_CBC, password())
            .setProvider("BC")
            .setPRF(PasswordRecipient.PRF.HMacSHA256)
            .setSaltAndIterationCount(salt, ITERATIONS));
    return generator
        .generate(
            content,
            new JceCMSMacCalculatorBuilder(PKCSObjectIdentifiers.id_hmacWithSHA256).setProvider("BC").build(),
            new JcaDigestCalculatorProviderBuilder().build().get(SHA256))
        .getEncoded();
  }

  /** RFC 5272 §3.2: the identification followed by the secret. */
  private char[] password() {
    return (option("identification") + option("secret")).toCharArray();
  }

  private TaggedRequest request(X500Name subject, KeyPair pair, byte[] random, boolean bad) throws Exception {
    BodyPartID id = nextBodyPart();
    ExtensionsGenerator extensions = new ExtensionsGenerator();
    extensions.addExtension(Extension.subjectKeyIdentifier, false, keyIdentifier(pair));
    if (options.containsKey("dns"))
      extensions.addExtension(
          Extension.subjectAlternativeName, false, new GeneralNames(new GeneralName(GeneralName.dNSName, option("dns"))));
    PopLinkWitnessV2 witness =
        options.containsKey("secret")
            ? new PopLinkWitnessV2(SHA256, HMAC_SHA256, mac(option("secret"), random))
            : null;
    return options.getOrDefault("format", "pkcs10").equals("crmf")
        ? new TaggedRequest(crmf(id, subject, pair, extensions, witness, bad))
        : new TaggedRequest(new TaggedCertificationRequest(id, pkcs10(subject, pair, extensions, witness, bad)));
  }

  private static CertificationRequest pkcs10(
      X500Name subject, KeyPair pair, ExtensionsGenerator extensions, ASN1Encodable witness, boolean bad)
      throws Exception {
    PKCS10CertificationRequestBuilder builder = new JcaPKCS10CertificationRequestBuilder(subject, pair.getPublic());
    builder.addAttribute(PKCSObjectIdentifiers.pkcs_9_at_extensionRequest, extensions.generate());
    if (witness != null) builder.addAttribute(CMCObjectIdentifiers.id_cmc_popLinkWitnessV2, witness);
    PKCS10CertificationRequest request = builder.build(signer(bad ? newKeyPair(pair) : pair.getPrivate()));
    return CertificationRequest.getInstance(request.toASN1Structure().toASN1Primitive());
  }

  private static CertReqMsg crmf(
      BodyPartID id, X500Name subject, KeyPair pair, ExtensionsGenerator extensions, ASN1Encodable witness, boolean bad)
      throws Exception {
    JcaCertificateRequestMessageBuilder builder =
        new JcaCertificateRequestMessageBuilder(BigInteger.valueOf(id.getID()));
    builder.setPublicKey(pair.getPublic());
    builder.setSubject(subject);
    for (ASN1ObjectIdentifier oid : extensions.generate().getExtensionOIDs()) {
      Extension extension = extensions.generate().getExtension(oid);
      builder.addExtension(oid, extension.isCritical(), extension.getExtnValue().getOctets());
    }
    if (witness != null) builder.addControl(new WitnessControl(witness));
    builder.setProofOfPossessionSigningKeySigner(signer(bad ? newKeyPair(pair) : pair.getPrivate()));
    return builder.build().toASN1Structure();
  }

  private record WitnessControl(ASN1Encodable value) implements Control {
    @Override
    public ASN1ObjectIdentifier getType() {
      return CMCObjectIdentifiers.id_cmc_popLinkWitnessV2;
    }

    @Override
    public ASN1Encodable getValue() {
      return value;
    }
  }

  private void control(ASN1ObjectIdentifier type, ASN1Encodable value) {
    controls.add(new TaggedAttribute(nextBodyPart(), type, new DERSet(value)));
  }

  private BodyPartID nextBodyPart() {
    return new BodyPartID(++lastBodyPart);
  }

  // --- responses ---------------------------------------------------------------------------------------------

  private void read() throws Exception {
    ContentInfo message = ContentInfo.getInstance(Files.readAllBytes(Path.of(option("in"))));
    List<X509CertificateHolder> certificates = new ArrayList<>();
    read("", message, certificates);
    if (options.containsKey("out")) write(Path.of(option("out")), certificates.toArray());
  }

  private void read(String prefix, ContentInfo message, List<X509CertificateHolder> certificates) throws Exception {
    byte[] content;
    if (message.getContentType().equals(PKCSObjectIdentifiers.signedData)) {
      CMSSignedData signed = new CMSSignedData(message);
      Store<X509CertificateHolder> carried = signed.getCertificates();
      certificates.addAll(carried.getMatches(null));
      System.out.println(prefix + "verified=" + verify(signed, carried));
      if (signed.getSignedContent() == null) return;
      if (!signed.getSignedContentTypeOID().equals(CMCObjectIdentifiers.id_cct_PKIResponse.getId()))
        throw new IllegalStateException("no PKIResponse");
      content = (byte[]) signed.getSignedContent().getContent();
    } else {
      CMSAuthenticatedData data = new CMSAuthenticatedData(message, new JcaDigestCalculatorProviderBuilder().build());
      RecipientInformation recipient = data.getRecipientInfos().getRecipients().iterator().next();
      content = recipient.getContent(new JcePasswordAuthenticatedRecipient(password()).setProvider("BC"));
      System.out.println(prefix + "verified=" + Arrays.equals(data.getMac(), recipient.getMac()));
    }
    PKIResponse response = PKIResponse.getInstance(ASN1Primitive.fromByteArray(content));
    for (ASN1Encodable control : response.getControlSequence())
      print(prefix, TaggedAttribute.getInstance(control));
    int nested = 0;
    for (ASN1Encodable part : response.getCmsSequence()) {
      TaggedContentInfo tagged = TaggedContentInfo.getInstance(part);
      read(prefix + "response" + ++nested + ".", tagged.getContentInfo(), certificates);
    }
  }

  /** Each signature, by a certificate that the message carries. */
  private static boolean verify(CMSSignedData signed, Store<X509CertificateHolder> carried) throws Exception {
    Collection<SignerInformation> signers = signed.getSignerInfos().getSigners();
    for (SignerInformation signer : signers) {
      @SuppressWarnings("unchecked")
      Collection<X509CertificateHolder> matches = carried.getMatches(signer.getSID());
      if (matches.isEmpty()) return false;
      X509CertificateHolder holder = matches.iterator().next();
      if (!signer.verify(new JcaSimpleSignerInfoVerifierBuilder().build(holder))) return false;
    }
    return !signers.isEmpty();
  }

  private static void print(String prefix, TaggedAttribute control) throws IOException {
    ASN1ObjectIdentifier type = control.getAttrType();
    ASN1Encodable value = control.getAttrValues().getObjectAt(0);
    if (type.equals(CMCObjectIdentifiers.id_cmc_statusInfoV2)) printStatus(prefix, CMCStatusInfoV2.getInstance(value));
    else if (type.equals(CMCObjectIdentifiers.id_cmc_transactionId))
      System.out.println(prefix + "transactionId=" + ASN1Integer.getInstance(value).getValue().toString(16));
    else if (type.equals(CMCObjectIdentifiers.id_cmc_senderNonce)) printOctets(prefix, "senderNonce", value);
    else if (type.equals(CMCObjectIdentifiers.id_cmc_recipientNonce)) printOctets(prefix, "recipientNonce", value);
    else if (type.equals(CMCObjectIdentifiers.id_cmc_batchResponses))
      System.out.println(prefix + "batchResponses=" + ids(BodyPartList.getInstance(value).getBodyPartIDs()));
    else System.out.println(prefix + "control=" + type.getId());
  }

  /** status=failed(2) body=1,2 failInfo=7 pendToken=… text=… */
  private static void printStatus(String prefix, CMCStatusInfoV2 status) throws IOException {
    StringBuilder line = new StringBuilder(prefix + "status=" + status.getcMCStatus().toASN1Primitive());
    line.append(" body=").append(ids(status.getBodyList()));
    OtherStatusInfo other = status.getOtherStatusInfo();
    if (other != null && other.isFailInfo()) line.append(" failInfo=").append(other.toASN1Primitive());
    if (other != null && other.isPendingInfo()) {
      PendInfo pending = PendInfo.getInstance(other.toASN1Primitive());
      line.append(" pendToken=").append(Hex.toHexString(pending.getPendToken()));
      line.append(" pendTime=").append(pending.getPendTime().getTimeString());
    }
    if (status.getStatusStringUTF8() != null) line.append(" text=").append(status.getStatusStringUTF8().getString());
    System.out.println(line);
  }

  private static String ids(BodyPartID[] list) {
    List<String> ids = new ArrayList<>();
    for (BodyPartID id : list) ids.add(String.valueOf(id.getID()));
    return String.join(",", ids);
  }

  private static void printOctets(String prefix, String name, ASN1Encodable value) {
    System.out.println(prefix + name + "=" + Hex.toHexString(ASN1OctetString.getInstance(value).getOctets()));
  }

  // --- keys and files ----------------------------------------------------------------------------------------

  private KeyPair newKeyPair() throws GeneralSecurityException {
    boolean rsa = options.getOrDefault("keytype", "ec").equals("rsa");
    KeyPairGenerator generator = KeyPairGenerator.getInstance(rsa ? "RSA" : "EC");
    if (rsa) generator.initialize(2048);
    else generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  /** Another key of the same kind. */
  private static PrivateKey newKeyPair(KeyPair like) throws GeneralSecurityException {
    return KeyPairGenerator.getInstance(like.getPublic().getAlgorithm()).generateKeyPair().getPrivate();
  }

  private static ContentSigner signer(PrivateKey key) throws Exception {
    return new JcaContentSignerBuilder(key.getAlgorithm().equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA").build(key);
  }

  private static SubjectKeyIdentifier keyIdentifier(KeyPair pair) throws GeneralSecurityException {
    return new JcaX509ExtensionUtils().createSubjectKeyIdentifier(pair.getPublic());
  }

  private static PrivateKeyInfo privateKeyInfo(KeyPair pair) {
    return PrivateKeyInfo.getInstance(pair.getPrivate().getEncoded());
  }

  /** HMAC-SHA256 under the SHA-256 of the text. */
  private static byte[] mac(String secret, byte[] data) throws GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(MessageDigest.getInstance("SHA-256").digest(utf8(secret)), "HmacSHA256"));
    return mac.doFinal(data);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private byte[] bytes(String name, int length) {
    if (options.containsKey(name)) return Hex.decode(option(name));
    byte[] random = new byte[length];
    RANDOM.nextBytes(random);
    return random;
  }

  private String option(String name) {
    String value = options.get(name);
    if (value == null) throw new IllegalArgumentException("missing " + name + "=");
    return value;
  }

  private X509CertificateHolder certificate(String name) throws IOException {
    return (X509CertificateHolder) readPem(name);
  }

  private PrivateKey privateKey(String name) throws IOException {
    return new JcaPEMKeyConverter().getPrivateKey((PrivateKeyInfo) readPem(name));
  }

  private Object readPem(String name) throws IOException {
    try (Reader reader = Files.newBufferedReader(Path.of(option(name)));
        PEMParser parser = new PEMParser(reader)) {
      return parser.readObject();
    }
  }

  private static void write(Path file, Object... objects) throws IOException {
    try (Writer writer = Files.newBufferedWriter(file);
        JcaPEMWriter pem = new JcaPEMWriter(writer)) {
      for (Object object : objects) pem.writeObject(object);
    }
  }
}
