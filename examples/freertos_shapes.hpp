// SPDX-License-Identifier: MIT
//
// What freertos_transport.cpp uses of FreeRTOS and FreeRTOS+TCP, in their names, shapes and values, so that it compiles
// where their headers are not. On the host these functions are in freertos_on_posix.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// FreeRTOS.h, as a 32-bit port has it, at a thousand ticks a second.
using BaseType_t = long;
using TickType_t = std::uint32_t;
#define configTICK_RATE_HZ 1000
#define pdTRUE 1
#define pdFREERTOS_ERRNO_EINTR 4
#define pdFREERTOS_ERRNO_EWOULDBLOCK 11
#define pdFREERTOS_ERRNO_ENOSPC 28
#define pdFREERTOS_ERRNO_ETIMEDOUT 116
#define pdFREERTOS_ERRNO_ENOTCONN 128

// task.h
TickType_t xTaskGetTickCount();
void vTaskDelay(TickType_t ticks);
void vTaskDelete(void* task);  // nullptr: the caller. On FreeRTOS it does not return.

// FreeRTOS_Sockets.h
struct xSOCKET;
using Socket_t = xSOCKET*;
struct freertos_sockaddr {
  std::uint8_t sin_len;
  std::uint8_t sin_family;
  std::uint16_t sin_port;  // In network order, as the address is.
  std::uint32_t sin_addr;  // From version 4 on: sin_address.ulIP_IPv4.
};
#define FREERTOS_INVALID_SOCKET (reinterpret_cast<Socket_t>(~std::uintptr_t{0}))
#define FREERTOS_AF_INET 2
#define FREERTOS_SOCK_STREAM 1
#define FREERTOS_IPPROTO_TCP 6
#define FREERTOS_SO_RCVTIMEO 0
#define FREERTOS_SO_SNDTIMEO 1
Socket_t FreeRTOS_socket(BaseType_t domain, BaseType_t type, BaseType_t protocol);
// `value` is a TickType_t for both timeouts; 0 ticks: do not wait.
BaseType_t FreeRTOS_setsockopt(Socket_t socket, std::int32_t level, std::int32_t name, const void* value,
                               std::size_t size);
// 0, or a negated errno. Waits for the receive timeout.
BaseType_t FreeRTOS_connect(Socket_t socket, const freertos_sockaddr* address, std::uint32_t size);
// Bytes queued, or a negated errno; ENOSPC when there was no room before the timeout.
BaseType_t FreeRTOS_send(Socket_t socket, const void* bytes, std::size_t size, BaseType_t flags);
// Bytes received; 0 when none came before the timeout; or a negated errno, when the peer has closed, too.
BaseType_t FreeRTOS_recv(Socket_t socket, void* bytes, std::size_t size, BaseType_t flags);
BaseType_t FreeRTOS_closesocket(Socket_t socket);

// The hook that FreeRTOS+TCP wants of every board: 32 bits of its hardware generator, or not pdTRUE.
BaseType_t xApplicationGetRandomNumber(std::uint32_t* number);
}
