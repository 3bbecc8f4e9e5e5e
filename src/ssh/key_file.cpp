// SPDX-License-Identifier: Apache-2.0
#include "ssh/key_file.hpp"

#include <string_view>

#include "base/text.hpp"
#include "ssh/encoding.hpp"

namespace gridctl::ssh {
namespace {

constexpr std::uint64_t k_key_bytes_max = 64 * 1024;  // a 16384 bit RSA key is 13 kB

// Returns the text between the BEGIN and END lines, without headers ("Proc-Type: …").
std::string armoured(std::string_view text) {
  std::string body;
  bool inside = false;
  for (const std::string& line : split_lines(text)) {
    if (line.starts_with("-----BEGIN ")) {
      inside = true;
    } else if (line.starts_with("-----END ")) {
      break;
    } else if (inside && line.find(':') == std::string::npos) {
      body += line;
    }
  }
  return body;
}

// openssh-key-v1: magic, cipher, kdf, kdf options, count, public key in the clear, private part.
bool read_openssh(std::string_view text, KeyFacts& facts) {
  const auto bytes = decode_base64(armoured(text));
  if (!bytes) return false;
  FieldReader fields{*bytes};
  const auto magic = fields.take(15);
  const auto cipher = fields.text();
  const auto kdf = fields.text();
  const auto options = fields.text();
  const auto count = fields.number();
  const auto blob = fields.text();
  if (magic != std::string_view{"openssh-key-v1\0", 15} || !cipher || !kdf || !options || !count || !blob) return false;
  FieldReader key{*blob};
  const auto type = key.text();
  if (!type) return false;
  facts.encrypted = *cipher != "none";
  facts.type = *type;
  facts.public_blob = *blob;
  return true;
}

void read_public_half(const os::Path& path, KeyFacts& facts) {
  os::Path beside = path;
  beside += ".pub";
  const auto text = os::read_file(beside, k_key_bytes_max);
  if (!text) return;
  const std::vector<std::string> parts = split(trim(*text), ' ');
  if (parts.size() < 2) return;
  const auto blob = decode_base64(parts[1]);
  if (!blob || FieldReader{*blob}.text() != parts[0]) return;
  facts.type = parts[0];
  facts.public_blob = *blob;
}

}  // namespace

Result<KeyFacts> inspect_key(const os::Path& path) {
  TRY_ASSIGN(const std::string text, os::read_file(path, k_key_bytes_max));
  KeyFacts facts;
  os::Path certificate = path;
  certificate += "-cert.pub";
  facts.has_certificate = os::exists(certificate);
  if (text.find("-----BEGIN OPENSSH PRIVATE KEY-----") != std::string::npos) {
    if (read_openssh(text, facts)) return facts;
    return make_error(Code::unsupported, "the key file " + path.native() + " is damaged");
  }
  if (text.find("PRIVATE KEY-----") == std::string::npos)
    return make_error(Code::unsupported, path.native() + " is not a private key");
  facts.encrypted = text.find("ENCRYPTED") != std::string::npos;
  if (text.find("-----BEGIN RSA ") != std::string::npos) facts.type = "ssh-rsa";
  if (text.find("-----BEGIN DSA ") != std::string::npos) facts.type = "ssh-dss";
  if (text.find("-----BEGIN EC ") != std::string::npos) facts.type = "ecdsa-sha2-nistp256";
  read_public_half(path, facts);
  return facts;
}

bool libssh2_signs_with(const std::string& type) {
  return type == "ssh-ed25519" || type == "ecdsa-sha2-nistp256" || type == "ecdsa-sha2-nistp384" ||
         type == "ecdsa-sha2-nistp521";
}

}  // namespace gridctl::ssh
