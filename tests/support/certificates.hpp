// SPDX-License-Identifier: MIT
//
// Certificates for one test, in a folder of its own: a CA, and what it signs. They go with their object.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "redis_server.hpp"

// The files of one: certificate and key, both PEM.
struct CertificateFiles {
  std::string certificate;
  std::string key;
};

class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name = "a CA of a test") {
    char folder[] = "/tmp/holdfast-ca-XXXXXX";
    if (::mkdtemp(folder) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = folder;
    key_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    certificate_ = make(name, *key_, "", 3600, true);
    write_certificate(file(), *certificate_);
  }
  ~CertificateAuthority() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  [[nodiscard]] std::string file() const { return folder_ + "/ca.pem"; }

  // For these names, as "DNS:localhost,IP:127.0.0.1"; it ends in so many seconds, which may be past.
  [[nodiscard]] CertificateFiles sign(const std::string& stem, const std::string& names, long seconds = 3600) const {
    const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    const Certificate made = make(stem, *key, names, seconds, false);
    CertificateFiles files = {folder_ + "/" + stem + ".pem", folder_ + "/" + stem + ".key"};
    write_certificate(files.certificate, *made);
    std::FILE* const out = std::fopen(files.key.c_str(), "w");
    PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(out);
    return files;
  }
  // The same as a server needs it that trusts this authority.
  [[nodiscard]] ServerTls tls_of(const std::string& stem, const std::string& names) const {
    const CertificateFiles files = sign(stem, names);
    return {file(), files.certificate, files.key};
  }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  [[nodiscard]] Certificate make(const std::string& name, EVP_PKEY& key, const std::string& names, long seconds,
                                 bool authority) const {
    Certificate made(X509_new());
    X509* const it = made.get();
    X509_set_version(it, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(it), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(it), -7200);
    X509_gmtime_adj(X509_getm_notAfter(it), seconds);
    X509_set_pubkey(it, &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(it), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(it, X509_get_subject_name(authority ? it : certificate_.get()));
    const auto extend = [&](int kind, const std::string& value) {
      X509V3_CTX context;
      X509V3_set_ctx_nodb(&context);
      X509V3_set_ctx(&context, authority ? it : certificate_.get(), it, nullptr, nullptr, 0);
      X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
      if (extension == nullptr) throw std::runtime_error("no such extension: " + value);
      X509_add_ext(it, extension, -1);
      X509_EXTENSION_free(extension);
    };
    if (authority) extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) extend(NID_subject_alt_name, names);
    X509_sign(it, key_.get(), EVP_sha256());
    return made;
  }
  static void write_certificate(const std::string& path, X509& certificate) {
    std::FILE* const out = std::fopen(path.c_str(), "w");
    PEM_write_X509(out, &certificate);
    std::fclose(out);
  }

  std::string folder_;
  Key key_;
  Certificate certificate_;
  mutable long serial_ = 0;
};
