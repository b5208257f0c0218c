// SPDX-License-Identifier: MIT
//
// The task of examples/freertos_transport.cpp on this board, as it stands there: a session and a lock machine, without a node and
// without tasks of holdfast's. It tells what a Mutex costs at least. Of FreeRTOS it has as much as that task calls.
//
// It is started with PORT KEY; exit codes as freertos_transport's.
#include "../freertos_shapes.hpp"

#include "board.hpp"
#include "holdfast/status.hpp"
#include "site.hpp"
#include "tcp_link.hpp"
#include "words.hpp"

using namespace board;

// As freertos_transport.cpp has it.
struct LockTask {
  freertos_sockaddr server;
  const char* key;
  holdfast::Status outcome;
};
extern "C" void lock_task(void* parameters);

// One is enough here.
struct xSOCKET {
  TcpLink link;
  TickType_t timeouts[2];  // By the option's number.
};

namespace {

Network network;
xSOCKET the_socket;
Endpoint server;

// Turns the loop until it is so, or for so long.
template <class Condition>
bool await(TickType_t ticks, Condition&& condition) {
  for (const TickType_t begin = xTaskGetTickCount();;) {
    const bool came = network.poll();
    if (condition()) return true;
    if (xTaskGetTickCount() - begin >= ticks) return false;
    if (!came) sleep();
  }
}

}  // namespace

TickType_t xTaskGetTickCount() { return milliseconds(); }

void vTaskDelay(TickType_t ticks) {
  (void)await(ticks, [] { return false; });
}

void vTaskDelete(void*) {}

Socket_t FreeRTOS_socket(BaseType_t, BaseType_t, BaseType_t) { return &the_socket; }

BaseType_t FreeRTOS_setsockopt(Socket_t socket, std::int32_t, std::int32_t name, const void* value, std::size_t) {
  socket->timeouts[name] = *static_cast<const TickType_t*>(value);
  return 0;
}

BaseType_t FreeRTOS_connect(Socket_t socket, const freertos_sockaddr*, std::uint32_t) {
  TcpLink& link = socket->link;
  if (!link.dial(server)) return -pdFREERTOS_ERRNO_ENOTCONN;
  const TickType_t timeout = socket->timeouts[FREERTOS_SO_RCVTIMEO];
  if (!await(timeout, [&link] { return link.state() != TcpLink::State::dialling; })) return -pdFREERTOS_ERRNO_ETIMEDOUT;
  return link.state() == TcpLink::State::open ? 0 : -pdFREERTOS_ERRNO_ENOTCONN;
}

BaseType_t FreeRTOS_send(Socket_t socket, const void* bytes, std::size_t size, BaseType_t) {
  if (socket->link.state() != TcpLink::State::open) return -pdFREERTOS_ERRNO_ENOTCONN;
  const std::size_t count = socket->link.send({static_cast<const char*>(bytes), size});
  return count == 0 ? -pdFREERTOS_ERRNO_ENOSPC : static_cast<BaseType_t>(count);
}

BaseType_t FreeRTOS_recv(Socket_t socket, void* bytes, std::size_t size, BaseType_t) {
  std::ptrdiff_t count = 0;
  (void)await(socket->timeouts[FREERTOS_SO_RCVTIMEO], [&] {
    count = socket->link.receive({static_cast<char*>(bytes), size});
    return count != 0;
  });
  return count < 0 ? -pdFREERTOS_ERRNO_ENOTCONN : static_cast<BaseType_t>(count);
}

BaseType_t FreeRTOS_closesocket(Socket_t socket) {
  socket->link.close();
  return 0;
}

BaseType_t xApplicationGetRandomNumber(std::uint32_t* number) {
  return draw_random(number, sizeof *number) ? pdTRUE : 0;
}

extern "C" void board_log(TickType_t, const char* what, const char* detail) {
  print(what);
  print(*detail == '\0' ? "" : ": ");
  print(detail);
  print("\n");
}

int main() {
  if (const char* const missing = start(network); missing != nullptr) {
    print(missing);
    return 71;
  }
  char line[128];
  char* words = line;
  std::uint32_t port = 0;
  if (!read_command_line(line, sizeof line) || !read_number(take_word(words), UINT16_MAX, port)) return 64;
  server = server_at(static_cast<std::uint16_t>(port));
  LockTask task{};
  task.key = take_word(words);
  lock_task(&task);
  if (task.outcome == holdfast::Status::ok) return 0;
  if (task.outcome == holdfast::Status::invalid_argument) return 64;
  if (task.outcome == holdfast::Status::not_connected) return 69;
  return task.outcome == holdfast::Status::lock_busy ? 75 : 79;
}
