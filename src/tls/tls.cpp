// SPDX-License-Identifier: MIT
//
// TLS by OpenSSL, over a socket of ours. OpenSSL reads and writes by two functions of ours, so that each receive and each send has
// its own flags, and none waits but a receive that may. What it writes goes into a buffer of the place: so what send() has
// taken is never asked for again, as OpenSSL would want it to be.
#include "holdfast/tls.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>

namespace holdfast {

namespace {

Tls::Place& place_of(BIO* bio) noexcept { return *static_cast<Tls::Place*>(BIO_get_data(bio)); }

// Sends what waits in the buffer, as far as the socket takes it. False: it takes nothing any more, and errno says why.
bool flush(Tls::Place& place) noexcept {
  while (place.begin != place.end) {
    const ssize_t count =
        ::send(place.socket, place.output + place.begin, place.end - place.begin, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    place.begin += static_cast<std::uint32_t>(count);
  }
  if (place.begin == place.end) place.begin = place.end = 0;
  place.unsent = place.end != 0;
  return !place.unsent || errno == EAGAIN || errno == EWOULDBLOCK;
}

int write_bytes(BIO* bio, const char* bytes, int size) noexcept {
  BIO_clear_retry_flags(bio);
  Tls::Place& place = place_of(bio);
  if (!flush(place)) return -1;
  if (place.begin != 0) {
    std::memmove(place.output, place.output + place.begin, place.end - place.begin);
    place.end -= place.begin;
    place.begin = 0;
  }
  const auto wanted = static_cast<std::uint32_t>(size);
  const std::uint32_t room = static_cast<std::uint32_t>(sizeof place.output) - place.end;
  const std::uint32_t taken = wanted < room ? wanted : room;
  if (taken == 0) {
    BIO_set_retry_write(bio);
    return -1;
  }
  std::memcpy(place.output + place.end, bytes, taken);
  place.end += taken;
  return flush(place) ? static_cast<int>(taken) : -1;
}

// The first receive of a call may wait; what follows it may not, or a peer that sends byte by byte would keep the call.
int read_bytes(BIO* bio, char* bytes, int size) noexcept {
  BIO_clear_retry_flags(bio);
  Tls::Place& place = place_of(bio);
  const ssize_t count = ::recv(place.socket, bytes, static_cast<std::size_t>(size), place.flags);
  if (count > 0) place.flags |= MSG_DONTWAIT;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) noexcept {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Made once, and never freed: OpenSSL's tables live as long as the process, too.
BIO_METHOD* method() noexcept {
  static BIO_METHOD* made = nullptr;
  BIO_METHOD* present = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
  if (present != nullptr) return present;
  BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast");
  if (fresh == nullptr) return nullptr;
  BIO_meth_set_write(fresh, write_bytes);
  BIO_meth_set_read(fresh, read_bytes);
  BIO_meth_set_ctrl(fresh, control);
  if (__atomic_compare_exchange_n(&made, &present, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return fresh;
  BIO_meth_free(fresh);
  return present;
}

// What a person needs to know of the failures that there are.
const char* plain_words(unsigned long error) noexcept {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return nullptr;
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_HTTP_REQUEST: return "the server's answer is no TLS: this port may be one without";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return "the server wants a client certificate";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return "the server does not trust the CA of our certificate";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE: return "the server does not accept our certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED: return "our certificate has expired, the server says";
    // TLS 1.2 says no more where a certificate is wanted, or no cipher is common to both.
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return "the server refused the handshake: it may want a client certificate, or other ciphers";
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL: return "the server speaks no TLS from 1.2 on";
    case SSL_R_UNEXPECTED_EOF_WHILE_READING: return "the server ended the connection without a word of TLS";
    default: return nullptr;
  }
}

void copy_words(Tls::Place& place, const char* first, const char* second) noexcept {
  std::size_t size = 0;
  for (const char* text : {first, second})
    while (*text != '\0' && size + 1 < sizeof place.words) place.words[size++] = *text++;
  place.words[size] = '\0';
  place.problem = place.words;
}

// Finds out why OpenSSL gave up.
void note_problem(Tls::Place& place) noexcept {
  const unsigned long error = ERR_get_error();
  const long verdict = SSL_get_verify_result(place.session);
  const bool unverified = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
  if (unverified && verdict != X509_V_OK)
    copy_words(place, "the server's certificate: ", X509_verify_cert_error_string(verdict));
  else if (const char* const words = plain_words(error); words != nullptr)
    place.problem = words;
  else if (const char* const reason = ERR_reason_error_string(error); reason != nullptr)
    copy_words(place, "TLS: ", reason);
  else
    place.problem = "TLS failed without a reason";
}

// What became of a call of OpenSSL that did not succeed: as the system calls say it.
std::ptrdiff_t outcome(Tls::Place& place, int result, int error_number) noexcept {
  switch (SSL_get_error(place.session, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = error_number == EINTR ? EINTR : EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL:
      if (error_number != 0) {
        errno = error_number;
        return -1;
      }
      return 0;
    default: break;
  }
  // An end without a farewell is one all the same: what RESP sends says itself where it ends.
  const unsigned long error = ERR_peek_error();
  if (place.established && ERR_GET_LIB(error) == ERR_LIB_SSL &&
      ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return 0;
  note_problem(place);
  errno = EPROTO;
  return -1;
}

bool is_address(const char* host) noexcept {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host, bytes) == 1 || ::inet_pton(AF_INET6, host, bytes) == 1;
}

}  // namespace

constinit const StreamSecurity::Table Tls::table = {open_layer, receive, send, close};

Tls::Tls(const Storage& storage) noexcept : StreamSecurity(table), storage_(storage) {}

Tls::~Tls() {
  for (std::size_t index = 0; index < storage_.count; ++index)
    if (storage_.places[index].taken) close(storage_.places[index]);
  SSL_CTX_free(context_);
}

// ---- What to trust, and who we are -------------------------------------------------------------------------------

Status Tls::refuse(Status status, ByteView what, const char* why) noexcept {
  text_size_ = 0;
  const auto add = [this](ByteView bytes) noexcept {
    for (const char byte : bytes)
      if (text_size_ < sizeof text_) text_[text_size_++] = byte;
  };
  add(what);
  if (why != nullptr) {
    add(": ");
    add(ByteView(why));
  }
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  if (reason != nullptr) {
    add(" (");
    add(ByteView(reason));
    add(")");
  }
  ERR_clear_error();
  return status;
}

Status Tls::open(const TlsConfig& config) noexcept {
  text_size_ = 0;
  ERR_clear_error();
  if (config.ca_file.too_long()) return refuse(Status::invalid_argument, "ca_file", "it is too long");
  if (config.certificate_file.too_long()) return refuse(Status::invalid_argument, "certificate_file", "it is too long");
  if (config.key_file.too_long()) return refuse(Status::invalid_argument, "key_file", "it is too long");
  if (config.server_name.too_long()) return refuse(Status::invalid_argument, "server_name", "it is too long");
  if (config.certificate_file.empty() != config.key_file.empty())
    return refuse(Status::invalid_argument, "certificate_file and key_file", "one goes with the other");
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr || method() == nullptr) {
    SSL_CTX_free(context);
    return refuse(Status::system_error, "OpenSSL cannot start", nullptr);
  }
  const auto give_up = [this, context](ByteView what, const char* why) noexcept {
    const Status status = refuse(Status::invalid_argument, what, why);
    SSL_CTX_free(context);
    return status;
  };
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) return give_up("OpenSSL knows no TLS 1.2", nullptr);
  SSL_CTX_set_quiet_shutdown(context, 1);
  (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);  // In the midst of one a send would wait for the peer.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, config.verify == TlsVerify::full ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (config.ca_file.empty()) {
    if (SSL_CTX_set_default_verify_paths(context) != 1)
      return give_up("the system's store of CAs", "it cannot be read");
  } else if (SSL_CTX_load_verify_file(context, config.ca_file.c_str()) != 1) {
    return give_up("ca_file", "it has no certificate, or cannot be read");
  }
  if (!config.certificate_file.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, config.certificate_file.c_str()) != 1)
      return give_up("certificate_file", "it has no certificate, or cannot be read");
    if (SSL_CTX_use_PrivateKey_file(context, config.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
      return give_up("key_file", "it has no key for the certificate, or cannot be read");
  }
  SSL_CTX_free(context_);
  context_ = context;
  config_ = config;
  return Status::ok;
}

// ---- One connection ----------------------------------------------------------------------------------------------

bool Tls::set_up(Place& place, int socket, const char* host) noexcept {
  place.session = context_ == nullptr ? nullptr : SSL_new(context_);
  BIO* const bio = place.session == nullptr ? nullptr : BIO_new(method());
  if (bio == nullptr) return false;
  BIO_set_data(bio, &place);
  BIO_set_init(bio, 1);
  SSL_set_bio(place.session, bio, bio);
  SSL_set_connect_state(place.session);
  place.security = this;
  place.socket = socket;
  place.begin = place.end = 0;
  place.established = place.pending = place.unsent = false;
  place.problem = nullptr;
  const char* const name = config_.server_name.empty() ? host : config_.server_name.c_str();
  if (is_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(place.session), name) == 1;
  SSL_set_hostflags(place.session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // What SSL_set_tlsext_host_name() is, without its cast.
  const long named =
      SSL_ctrl(place.session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name));
  return named == 1 && SSL_set1_host(place.session, name) == 1;
}

StreamLayer* Tls::open_layer(StreamSecurity& security, int socket, const char* host) noexcept {
  auto& self = static_cast<Tls&>(security);
  for (std::size_t index = 0; index < self.storage_.count; ++index) {
    Place& place = self.storage_.places[index];
    if (__atomic_exchange_n(&place.taken, true, __ATOMIC_ACQUIRE)) continue;
    if (self.set_up(place, socket, host)) return &place;
    close(place);
    return nullptr;
  }
  return nullptr;
}

void Tls::close(StreamLayer& layer) noexcept {
  auto& place = static_cast<Place&>(layer);
  SSL_free(place.session);
  place.session = nullptr;
  ::explicit_bzero(place.output, sizeof place.output);
  __atomic_store_n(&place.taken, false, __ATOMIC_RELEASE);
}

std::ptrdiff_t Tls::receive(StreamLayer& layer, MutableBytes space, int flags) noexcept {
  auto& place = static_cast<Place&>(layer);
  place.flags = flags;
  ERR_clear_error();
  errno = 0;
  const int size = space.size < INT32_MAX ? static_cast<int>(space.size) : INT32_MAX;
  const int count = SSL_read(place.session, space.data, size);
  const int error_number = errno;
  if (!place.established && SSL_is_init_finished(place.session) == 1) place.established = true;
  place.pending = count > 0 && SSL_pending(place.session) > 0;
  return count > 0 ? count : outcome(place, count, error_number);
}

std::ptrdiff_t Tls::send(StreamLayer& layer, ByteView bytes, int /*flags*/) noexcept {
  auto& place = static_cast<Place&>(layer);
  place.flags = MSG_DONTWAIT;  // The handshake may receive.
  ERR_clear_error();
  errno = 0;
  if (!flush(place)) return -1;
  if (place.unsent) {  // One after the other: what is refused now is nobody's but the caller's.
    errno = EAGAIN;
    return -1;
  }
  if (bytes.empty()) return 0;
  const int size = bytes.size() < INT32_MAX ? static_cast<int>(bytes.size()) : INT32_MAX;
  const int count = SSL_write(place.session, bytes.data(), size);
  const int error_number = errno;
  if (!place.established && SSL_is_init_finished(place.session) == 1) place.established = true;
  if (count > 0) return count;
  // The peer has ended the connection in the midst of the handshake. None sent would say: try once more, and so for ever.
  const std::ptrdiff_t result = outcome(place, count, error_number);
  if (result != 0) return result;
  errno = EPIPE;
  return -1;
}

}  // namespace holdfast
