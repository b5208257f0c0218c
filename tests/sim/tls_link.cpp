// SPDX-License-Identifier: MIT
#define OPENSSL_SUPPRESS_DEPRECATED  // A source of random numbers of our own is set by a function that is on its way out.
#include "tls_link.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "holdfast/tls.hpp"
#include "random.hpp"
#include "world.hpp"

namespace holdfast::sim {

namespace {

constexpr const char* common_name = "servers.test";

void require(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "sim: OpenSSL: %s failed\n", what);
  ERR_print_errors_fp(stderr);
  std::abort();
}

// ---- Randomness --------------------------------------------------------------------------------------------------

// What all worlds of a process share is drawn from this one: else the first world would differ from the others.
Random* shared_source = nullptr;

int draw(unsigned char* bytes, int size) {
  Random& source = shared_source != nullptr ? *shared_source : World::current()->tls_random();
  for (int index = 0; index < size; ++index) bytes[index] = static_cast<unsigned char>(source.next() >> 56);
  return 1;
}
int no_seed(const void*, int) { return 1; }
int no_entropy(const void*, int, double) { return 1; }
int is_ready() { return 1; }

const RAND_METHOD drawn_method = {no_seed, draw, nullptr, no_entropy, draw, is_ready};

// ---- Of all servers ----------------------------------------------------------------------------------------------

struct Authority {
  SSL_CTX* context = nullptr;
  std::string ca_file;

  Authority();
};

[[nodiscard]] const Authority& authority();

EVP_PKEY* make_key() {
  char group[] = "P-256";
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", group);
  require(key != nullptr, "a key");
  return key;
}

X509* make_certificate(EVP_PKEY* key) {
  X509* const certificate = X509_new();
  require(certificate != nullptr && X509_set_version(certificate, X509_VERSION_3) == 1, "a certificate");
  (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  // The same on each day, so that a seed says the same.
  require(ASN1_TIME_set_string(X509_getm_notBefore(certificate), "20200101000000Z") == 1 &&
              ASN1_TIME_set_string(X509_getm_notAfter(certificate), "21000101000000Z") == 1,
          "a time");
  X509_NAME* const name = X509_get_subject_name(certificate);
  (void)X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(common_name), -1,
                                   -1, 0);
  (void)X509_set_issuer_name(certificate, name);
  X509_EXTENSION* const names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:servers.test");
  require(names != nullptr && X509_add_ext(certificate, names, -1) == 1, "a name");
  X509_EXTENSION_free(names);
  require(X509_set_pubkey(certificate, key) == 1 && X509_sign(certificate, key, EVP_sha256()) != 0, "a signature");
  return certificate;
}

// A file in memory, as long as the process lives.
std::string write_certificate(X509* certificate) {
  const int descriptor = ::memfd_create("ca.pem", MFD_CLOEXEC);
  require(descriptor >= 0, "a file in memory");
  BIO* const file = BIO_new_fd(descriptor, BIO_NOCLOSE);
  require(PEM_write_bio_X509(file, certificate) == 1, "writing a certificate");
  BIO_free(file);
  return "/proc/self/fd/" + std::to_string(descriptor);
}

SSL_CTX* make_context(EVP_PKEY* key, X509* certificate) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  require(context != nullptr && SSL_CTX_use_certificate(context, certificate) == 1 &&
              SSL_CTX_use_PrivateKey(context, key) == 1,
          "a server's context");
  // A ticket that has the session in it has the time in it, too, and that is not the world's.
  (void)SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  (void)SSL_CTX_sess_set_cache_size(context, 1);
  return context;
}

// ---- A server's end ----------------------------------------------------------------------------------------------

class OpensslPeer final : public TlsPeer {
 public:
  OpensslPeer(SSL_CTX* context, bool tls_1_2) : session_(SSL_new(context)) {
    require(session_ != nullptr, "a session");
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(session_, in_, out_);
    SSL_set_accept_state(session_);
    if (tls_1_2) (void)SSL_set_max_proto_version(session_, TLS1_2_VERSION);
  }
  OpensslPeer(const OpensslPeer&) = delete;
  OpensslPeer& operator=(const OpensslPeer&) = delete;
  ~OpensslPeer() override {
    SSL_set_quiet_shutdown(session_, 1);
    SSL_free(session_);
  }

  bool receive(std::string_view bytes, std::string& opened, std::string& answer) override {
    ERR_clear_error();
    (void)BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    char space[4096];
    int count = 0;
    while ((count = SSL_read(session_, space, sizeof space)) > 0) opened.append(space, static_cast<std::size_t>(count));
    const bool sound = SSL_get_error(session_, count) == SSL_ERROR_WANT_READ;
    ERR_clear_error();
    answer = take_output();
    return sound;
  }

  std::string seal(std::string_view bytes) override {
    if (SSL_is_init_finished(session_) != 1) return {};
    (void)SSL_write(session_, bytes.data(), static_cast<int>(bytes.size()));
    return take_output();
  }

  std::string farewell() override {
    if (SSL_is_init_finished(session_) != 1) return {};
    (void)SSL_shutdown(session_);
    return take_output();
  }

 private:
  std::string take_output() {
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) (void)BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

  SSL* session_;
  BIO* in_ = nullptr;  // The session's.
  BIO* out_ = nullptr;
};

// A handshake and some words. OpenSSL draws some numbers but once.
void warm_up(SSL_CTX* context, bool tls_1_2) {
  SSL_CTX* const client_context = SSL_CTX_new(TLS_client_method());
  SSL* const client = SSL_new(client_context);
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(client, in, out);
  SSL_set_connect_state(client);
  OpensslPeer peer(context, tls_1_2);
  std::string opened;
  while (opened.empty()) {
    (void)SSL_write(client, "x", 1);
    std::string bytes(BIO_ctrl_pending(out), '\0');
    std::string answer;
    (void)BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
    require(peer.receive(bytes, opened, answer), "a handshake");
    (void)BIO_write(in, answer.data(), static_cast<int>(answer.size()));
  }
  SSL_set_quiet_shutdown(client, 1);
  SSL_free(client);
  SSL_CTX_free(client_context);
}

Authority::Authority() {
  Random source(1);
  shared_source = &source;
  require(RAND_set_rand_method(&drawn_method) == 1, "a source of random numbers");
  EVP_PKEY* const key = make_key();
  X509* const certificate = make_certificate(key);
  context = make_context(key, certificate);
  ca_file = write_certificate(certificate);
  warm_up(context, false);
  warm_up(context, true);
  X509_free(certificate);
  EVP_PKEY_free(key);
  shared_source = nullptr;
}

const Authority& authority() {
  static const Authority made;
  return made;
}

// ---- A program's end ---------------------------------------------------------------------------------------------

// Between a stream and Tls: what passes is shown to the world.
class ShownTls final : public ProgramTls, public StreamSecurity {
 public:
  explicit ShownTls(std::size_t connections)
      : StreamSecurity(table_of_this), places_(new Tls::Place[connections]), tls_({places_.get(), connections}) {
    TlsConfig config;
    config.ca_file = authority().ca_file;
    config.server_name = common_name;
    require(tls_.open(config) == Status::ok, "opening a program's end");
  }

  StreamSecurity& security() noexcept override { return *this; }

 private:
  [[nodiscard]] const Table& inner() const noexcept { return static_cast<const StreamSecurity&>(tls_).table(); }
  static ShownTls& of(StreamLayer& layer) noexcept { return static_cast<ShownTls&>(*layer.security); }
  static Link& link_of(const StreamLayer& layer) noexcept {
    World& world = *World::current();
    return world.link(world.descriptor(static_cast<const Tls::Place&>(layer).socket)->index);
  }

  static StreamLayer* open(StreamSecurity& security, int socket, const char* host) noexcept {
    auto& self = static_cast<ShownTls&>(security);
    StreamLayer* const layer = self.inner().open(self.tls_, socket, host);
    if (layer != nullptr) layer->security = &self;
    return layer;
  }
  static std::ptrdiff_t receive(StreamLayer& layer, MutableBytes space, int flags) noexcept {
    const std::ptrdiff_t count = of(layer).inner().receive(layer, space, flags);
    if (count > 0) World::current()->note_opened(link_of(layer), {space.data, static_cast<std::size_t>(count)});
    return count;
  }
  static std::ptrdiff_t send(StreamLayer& layer, ByteView bytes, int flags) noexcept {
    World& world = *World::current();
    Link& link = link_of(layer);
    if (!bytes.empty()) world.note_unlooked(link, bytes.string_view());
    const std::ptrdiff_t count = of(layer).inner().send(layer, bytes, flags);
    if (count > 0) world.note_sent(link, bytes.string_view(), static_cast<std::size_t>(count));
    return count;
  }
  static void close(StreamLayer& layer) noexcept { of(layer).inner().close(layer); }
  static constexpr Table table_of_this = {open, receive, send, close};

  std::unique_ptr<Tls::Place[]> places_;
  Tls tls_;
};

}  // namespace

std::unique_ptr<TlsPeer> make_tls_peer(bool tls_1_2) {
  return std::make_unique<OpensslPeer>(authority().context, tls_1_2);
}

std::unique_ptr<ProgramTls> make_program_tls(std::size_t connections) {
  return std::make_unique<ShownTls>(connections);
}

void forget_tls_errors() noexcept {
  const int error = errno;
  ERR_clear_error();
  errno = error;
}

}  // namespace holdfast::sim
