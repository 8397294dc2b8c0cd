# Not run by the tests. Called with issue, poll or revoke, and the reason code of a revocation.
param([string]$Kind, [int]$Reason = 0)
$Config = 'ca.example.com\Example Issuing CA'
$Template = 'EstuaryDevice'

$folder = New-Item -ItemType Directory -Path (Join-Path $env:TEMP ([guid]::NewGuid()))
try {
  $in = Join-Path $folder 'in'
  $certificate = Join-Path $folder 'certificate.cer'
  $chain = Join-Path $folder 'chain.p7b'
  $text = [Console]::In.ReadToEnd()
  [IO.File]::WriteAllText($in, $text)
  switch ($Kind) {
    'issue' { $output = certreq -submit -q -f -config $Config -attrib "CertificateTemplate:$Template" $in $certificate $chain }
    'poll' {
      # Nothing after a lost response: AD CS cannot be asked by a name of ours.
      $id = $text.Trim()
      if ($id -notmatch '^\d+$') { exit 1 }
      $output = certreq -retrieve -q -f -config $Config $id $certificate $chain
    }
    'revoke' {
      $x509 = New-Object Security.Cryptography.X509Certificates.X509Certificate2 $in
      certutil -config $Config -revoke $x509.SerialNumber $Reason | Out-Null
      exit $LASTEXITCODE
    }
    default { exit 1 }
  }
  $code = $LASTEXITCODE
  if (Test-Path $certificate) {
    Get-Content $certificate
    $all = New-Object Security.Cryptography.X509Certificates.X509Certificate2Collection
    $all.Import($chain)
    foreach ($one in $all) {
      '-----BEGIN CERTIFICATE-----'
      [Convert]::ToBase64String($one.RawData, 'InsertLineBreaks')
      '-----END CERTIFICATE-----'
    }
    exit 0
  }
  $found = $output | Select-String -Pattern 'RequestId:\s*"?(\d+)' | Select-Object -First 1
  if ($code -eq 0 -and $found) { $found.Matches[0].Groups[1].Value; exit 10 }
  [Console]::Error.WriteLine(($output -join ' '))
  # A denied request has a number; without one, the CA did not answer.
  if ($found) { exit 65 }
  exit 1
} finally {
  Remove-Item -Recurse -Force $folder
}
