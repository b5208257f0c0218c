// SPDX-License-Identifier: MIT
//
// The functions of freertos_shapes.hpp on the host: as much of FreeRTOS as freertos_transport.cpp needs to run in tests.
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "freertos_shapes.hpp"

// One is enough here.
struct xSOCKET {
  int descriptor = -1;
  TickType_t timeouts[2] = {};  // By the option's number.
};

namespace {

xSOCKET the_socket;

static_assert(configTICK_RATE_HZ == 1000, "a tick is poll()'s millisecond");

// As configINITIAL_TICK_COUNT does for tests: the counter starts 1.5 seconds before its overflow, so every run sees one.
constexpr TickType_t initial_tick_count = TickType_t{0} - 1500;

std::uint64_t milliseconds() {
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
}
const std::uint64_t start = milliseconds();

BaseType_t negated(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return -pdFREERTOS_ERRNO_EWOULDBLOCK;
  return error == EINTR ? -pdFREERTOS_ERRNO_EINTR : -pdFREERTOS_ERRNO_ENOTCONN;
}

bool await(const xSOCKET& socket, short events, TickType_t ticks) {
  pollfd entry = {.fd = socket.descriptor, .events = events, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(ticks)) == 1;
}

}  // namespace

TickType_t xTaskGetTickCount() { return initial_tick_count + static_cast<TickType_t>(milliseconds() - start); }

void vTaskDelay(TickType_t ticks) { (void)::poll(nullptr, 0, static_cast<int>(ticks)); }

void vTaskDelete(void*) {}

Socket_t FreeRTOS_socket(BaseType_t, BaseType_t, BaseType_t) {
  the_socket.descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  return the_socket.descriptor < 0 ? FREERTOS_INVALID_SOCKET : &the_socket;
}

BaseType_t FreeRTOS_setsockopt(Socket_t socket, std::int32_t, std::int32_t name, const void* value, std::size_t) {
  socket->timeouts[name] = *static_cast<const TickType_t*>(value);
  return 0;
}

BaseType_t FreeRTOS_connect(Socket_t socket, const freertos_sockaddr* address, std::uint32_t) {
  sockaddr_in native{};
  native.sin_family = AF_INET;
  native.sin_port = address->sin_port;
  native.sin_addr.s_addr = address->sin_addr;
  if (::connect(socket->descriptor, reinterpret_cast<const sockaddr*>(&native), sizeof native) == 0) return 0;
  if (errno != EINPROGRESS) return negated(errno);
  if (!await(*socket, POLLOUT, socket->timeouts[FREERTOS_SO_RCVTIMEO])) return -pdFREERTOS_ERRNO_ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  (void)::getsockopt(socket->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? 0 : negated(error);
}

BaseType_t FreeRTOS_send(Socket_t socket, const void* bytes, std::size_t size, BaseType_t) {
  if (!await(*socket, POLLOUT, socket->timeouts[FREERTOS_SO_SNDTIMEO])) return -pdFREERTOS_ERRNO_ENOSPC;
  const ssize_t count = ::send(socket->descriptor, bytes, size, MSG_NOSIGNAL);
  return count < 0 ? negated(errno) : static_cast<BaseType_t>(count);
}

BaseType_t FreeRTOS_recv(Socket_t socket, void* bytes, std::size_t size, BaseType_t) {
  if (!await(*socket, POLLIN, socket->timeouts[FREERTOS_SO_RCVTIMEO])) return 0;
  const ssize_t count = ::recv(socket->descriptor, bytes, size, 0);
  if (count == 0) return -pdFREERTOS_ERRNO_ENOTCONN;
  return count < 0 ? negated(errno) : static_cast<BaseType_t>(count);
}

BaseType_t FreeRTOS_closesocket(Socket_t socket) {
  ::close(socket->descriptor);
  socket->descriptor = -1;
  return 0;
}

BaseType_t xApplicationGetRandomNumber(std::uint32_t* number) {
  return ::getrandom(number, sizeof *number, 0) == static_cast<ssize_t>(sizeof *number) ? pdTRUE : 0;
}
