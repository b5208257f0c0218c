// SPDX-License-Identifier: MIT
//
// The system calls of a simulated process. The linker puts them in the place of libc's (--wrap) for all that is linked
// statically: the blocking client, and Asio with the client for its loops. Outside of a fiber, and for descriptors that are none of a world's,
// libc is called.
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "application.hpp"
#include "canary.hpp"
#include "pace.hpp"
#include "world.hpp"

using holdfast::sim::Address;
using holdfast::sim::Descriptor;
using holdfast::sim::Epoll;
using holdfast::sim::Fiber;
using holdfast::sim::Interest;
using holdfast::sim::Link;
using holdfast::sim::never;
using holdfast::sim::Pipe;
using holdfast::sim::Process;
using holdfast::sim::Resolution;
using holdfast::sim::second;
using holdfast::sim::SimTime;
using holdfast::sim::Thread;
using holdfast::sim::World;

namespace {

bool simulated() noexcept { return Fiber::current() != nullptr; }
World& world() noexcept { return *World::current(); }

Descriptor* simulated_descriptor(int number) noexcept {
  return number >= holdfast::sim::descriptor_base && World::current() != nullptr ? world().descriptor(number) : nullptr;
}

// Its process was killed, and has nothing any more.
bool leaving() noexcept { return simulated() && world().process().leaving; }

// As long as one lives, a system call of a fiber is in progress.
class SystemCall {
 public:
  explicit SystemCall(const char* name) noexcept { world().enter_call(name); }
  ~SystemCall() {
    world().leave_call();
    holdfast::sim::forget_tls_errors();
  }
  SystemCall(const SystemCall&) = delete;
  SystemCall& operator=(const SystemCall&) = delete;
};

int refuse(int error) noexcept {
  errno = error;
  return -1;
}

short ready_events(const Descriptor& open) noexcept {
  if (open.kind == Descriptor::Kind::pipe || open.kind == Descriptor::Kind::event)
    return world().pipe(open.index).count != 0 ? POLLIN : short{0};
  if (open.kind == Descriptor::Kind::timer) return world().timer(open.index) <= world().now() ? POLLIN : short{0};
  if (open.kind != Descriptor::Kind::socket) return POLLNVAL;
  const Link& link = world().link(open.index);
  int events = 0;
  if ((!link.received.empty() && !holdfast::sim::overlooked(world(), link)) || link.end_received) events |= POLLIN;
  if (link.state == Link::State::established && link.up_bytes < 16 * 1024 && world().now() >= link.full_until)
    events |= POLLOUT;
  if (link.state == Link::State::failed || link.error != 0) events |= POLLIN | POLLOUT | POLLERR;
  return static_cast<short>(events);
}

// When a socket that takes nothing for a while, which wakes nobody when it does again, is written to by who waits for that.
SimTime full_until(const Interest& interest, const Descriptor& open) noexcept {
  if (open.kind != Descriptor::Kind::socket || (interest.events & EPOLLOUT) == 0) return 0;
  return world().link(open.index).full_until;
}

// What has come by itself, with time.
void take_time(Epoll& epoll) {
  if (holdfast::sim::timer_overslept_as_canary(world(), epoll)) return;
  for (Interest& interest : epoll.interests) {
    const Descriptor& open = *world().descriptor(interest.number);
    if (open.kind == Descriptor::Kind::timer && world().timer(open.index) <= world().now()) epoll.add(interest);
    const bool full = full_until(interest, open) > world().now();
    if (interest.was_full && !full) epoll.add(interest);
    interest.was_full = full;
  }
}

SimTime next_time(const Epoll& epoll) noexcept {
  SimTime next = never;
  if (holdfast::sim::timer_overslept_as_canary(world(), epoll)) return next;
  for (const Interest& interest : epoll.interests) {
    const Descriptor& open = *world().descriptor(interest.number);
    if (open.kind == Descriptor::Kind::timer) next = std::min(next, world().timer(open.index));
    if (const SimTime full = full_until(interest, open); full > world().now()) next = std::min(next, full);
  }
  return next;
}

// In the order in which they came. An edge is told once, and what is not there any more is not told.
int take_events(Epoll& epoll, epoll_event* events, int most) {
  static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);
  take_time(epoll);
  int count = 0;
  for (std::size_t left = epoll.queue.size(); left != 0 && count < most; --left) {
    const int number = epoll.queue.front();
    epoll.queue.erase(epoll.queue.begin());
    Interest& interest = *epoll.find(number);
    interest.queued = false;
    const auto ready =
        static_cast<std::uint32_t>(ready_events(*world().descriptor(number))) & (interest.events | EPOLLERR | EPOLLHUP);
    const bool socket = world().descriptor(number)->kind == Descriptor::Kind::socket;
    if (ready == 0 || (socket && holdfast::sim::edge_lost_as_canary(world()))) continue;
    events[count].events = ready;
    events[count].data.u64 = interest.data;
    ++count;
    if ((interest.events & EPOLLET) == 0) epoll.add(interest);
  }
  return count;
}

// A mutex of a simulated process: locked or not, in its first word, as PTHREAD_MUTEX_INITIALIZER leaves it at zero.
int& word_of(pthread_mutex_t* mutex) noexcept { return *reinterpret_cast<int*>(mutex); }

}  // namespace

extern "C" {

int __real_socket(int, int, int);
int __real_connect(int, const sockaddr*, socklen_t);
int __real_getsockopt(int, int, int, void*, socklen_t*);
int __real_setsockopt(int, int, int, const void*, socklen_t);
ssize_t __real_send(int, const void*, size_t, int);
ssize_t __real_recv(int, void*, size_t, int);
int __real_ppoll(pollfd*, nfds_t, const timespec*, const sigset_t*);
int __real_pipe2(int[2], int);
int __real_fcntl(int, int, ...);
int __real_close(int);
ssize_t __real_read(int, void*, size_t);
ssize_t __real_write(int, const void*, size_t);
void* __real_mmap(void*, size_t, int, int, int, off_t);
int __real_munmap(void*, size_t);
int __real_madvise(void*, size_t, int);
ssize_t __real_getrandom(void*, size_t, unsigned);
int __real_clock_gettime(clockid_t, timespec*);
int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
void __real_freeaddrinfo(addrinfo*);
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __real_pthread_join(pthread_t, void**);
int __real_pthread_detach(pthread_t);
pthread_t __real_pthread_self();
int __real_pthread_sigmask(int, const sigset_t*, sigset_t*);
int __real_pthread_mutex_lock(pthread_mutex_t*);
int __real_pthread_mutex_unlock(pthread_mutex_t*);
int __real_pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*);
int __real_pthread_cond_broadcast(pthread_cond_t*);
int __real_pthread_cond_signal(pthread_cond_t*);
int __real_epoll_create1(int);
int __real_epoll_ctl(int, int, int, epoll_event*);
int __real_epoll_wait(int, epoll_event*, int, int);
int __real_eventfd(unsigned, int);
int __real_timerfd_create(int, int);
int __real_timerfd_settime(int, int, const itimerspec*, itimerspec*);
int __real_ioctl(int, unsigned long, ...);
std::int64_t __real__ZNSt6chrono3_V212steady_clock3nowEv();

int __wrap_socket(int domain, int type, int protocol) {
  if (!simulated()) return __real_socket(domain, type, protocol);
  if (leaving()) return refuse(EMFILE);
  const SystemCall call("socket");
  if (world().now() < world().process().no_sockets_until) {
    world().pace().note_no_socket(world().process(), world().thread());
    return refuse(EMFILE);
  }
  return world().open_socket();
}

int __wrap_connect(int number, const sockaddr* address, socklen_t size) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_connect(number, address, size);
  if (leaving()) return refuse(ENETDOWN);
  const SystemCall call("connect");
  if (holdfast::sim::sin_of(world()) == holdfast::sim::Sin::resolves_in_line && !world().uses_locks(world().thread()))
    world().sleep(world().random().magnitude(second, 12 * second));
  sockaddr_in to{};
  std::memcpy(&to, address, std::min<std::size_t>(size, sizeof to));
  const int error =
      world().connect(open->index, static_cast<std::size_t>(ntohs(to.sin_port) - holdfast::sim::port_base),
                      holdfast::sim::at_address(ntohl(to.sin_addr.s_addr)));
  return error == 0 ? 0 : refuse(error);
}

int __wrap_getsockopt(int number, int level, int name, void* value, socklen_t* size) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_getsockopt(number, level, name, value, size);
  const int error = world().link(open->index).error;
  std::memcpy(value, &error, sizeof error);
  return 0;
}

int __wrap_setsockopt(int number, int level, int name, const void* value, socklen_t size) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_setsockopt(number, level, name, value, size);
  if (level == SOL_SOCKET && name == SO_RCVTIMEO) {
    timeval limit{};
    std::memcpy(&limit, value, sizeof limit);
    world().link(open->index).receive_timeout = limit.tv_sec * second + limit.tv_usec * 1000;
  }
  return 0;
}

ssize_t __wrap_send(int number, const void* bytes, size_t size, int flags) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_send(number, bytes, size, flags);
  if (leaving()) return refuse(EPIPE);
  const SystemCall call("send");
  Link& link = world().link(open->index);
  if (link.error != 0) return refuse(link.error);
  if (link.end_received) {
    world().note_unlooked(link, {static_cast<const char*>(bytes), size});
    link.error = EPIPE;  // What is sent after the end is answered by a reset.
    return static_cast<ssize_t>(size);
  }
  const std::string_view view = holdfast::sim::sent_as_canary(world(), {static_cast<const char*>(bytes), size});
  const std::size_t sent = world().send(link.index, view);
  return sent == 0 ? refuse(EAGAIN) : static_cast<ssize_t>(sent);
}

ssize_t __wrap_recv(int number, void* bytes, size_t size, int flags) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_recv(number, bytes, size, flags);
  if (leaving()) return 0;
  const SystemCall call("recv");
  Link& link = world().link(open->index);
  const SimTime deadline = link.receive_timeout == 0 ? never : world().deadline_after(link.receive_timeout);
  for (;;) {
    if (!link.received.empty() && ((flags & MSG_DONTWAIT) == 0 || !holdfast::sim::overlooked(world(), link))) {
      link.unasked = false;
      const std::size_t count = std::min(size, link.received.size());
      std::memcpy(bytes, link.received.data(), count);
      if (!holdfast::sim::reads_twice(world())) link.received.erase(0, count);
      return static_cast<ssize_t>(count);
    }
    if (link.error != 0) return link.error == EPIPE ? 0 : refuse(link.error);
    if (link.end_received) return 0;
    if ((flags & MSG_DONTWAIT) != 0 || world().now() >= deadline) return refuse(EAGAIN);
    Thread& self = world().thread();
    self.descriptors[0] = number;
    self.descriptor_count = 1;
    self.interrupted = false;
    (void)world().block(deadline);
    self.descriptor_count = 0;
    if (self.interrupted && link.received.empty()) {
      self.interrupted = false;
      return refuse(EINTR);
    }
  }
}

int __wrap_ppoll(pollfd* entries, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!simulated()) return __real_ppoll(entries, count, timeout, mask);
  const SystemCall call("ppoll");
  const SimTime deadline =
      timeout == nullptr ? never : world().deadline_after(timeout->tv_sec * second + timeout->tv_nsec);
  const SimTime sliver = holdfast::sim::sin_of(world()) == holdfast::sim::Sin::sleeps_in_slivers
                             ? world().now() + 20 * holdfast::sim::microsecond
                             : never;
  Thread& self = world().thread();
  self.interrupted = false;
  for (;;) {
    int ready = 0;
    for (nfds_t index = 0; index < count; ++index) {
      pollfd& entry = entries[index];
      entry.revents = 0;
      const Descriptor* const open = simulated_descriptor(entry.fd);
      if (open == nullptr) continue;
      entry.revents = static_cast<short>(ready_events(*open) & (entry.events | POLLERR | POLLHUP | POLLNVAL));
      if (entry.revents != 0) ++ready;
    }
    if (ready != 0) return ready;
    if (world().now() >= std::min(deadline, sliver)) return 0;
    self.descriptor_count = std::min<std::size_t>(count, self.descriptors.size());
    for (std::size_t index = 0; index < self.descriptor_count; ++index) self.descriptors[index] = entries[index].fd;
    SimTime until = std::min(deadline, sliver);
    // A socket that takes nothing for a while wakes nobody when it does again.
    for (nfds_t index = 0; index < count; ++index) {
      const Descriptor* const open = simulated_descriptor(entries[index].fd);
      if (open == nullptr || open->kind != Descriptor::Kind::socket || (entries[index].events & POLLOUT) == 0) continue;
      const SimTime full = world().link(open->index).full_until;
      if (full > world().now()) until = std::min(until, full);
    }
    (void)world().block(until);
    self.descriptor_count = 0;
    if (self.interrupted) {
      self.interrupted = false;
      return refuse(EINTR);
    }
  }
}

int __wrap_pipe2(int ends[2], int flags) {
  if (!simulated()) return __real_pipe2(ends, flags);
  world().open_pipe(ends);
  return 0;
}

int __wrap_fcntl(int number, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return simulated_descriptor(number) == nullptr ? __real_fcntl(number, command, argument) : 0;
}
int __wrap_fcntl64(int number, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return simulated_descriptor(number) == nullptr ? __real_fcntl(number, command, argument) : 0;
}

int __wrap_close(int number) {
  if (simulated_descriptor(number) == nullptr) return __real_close(number);
  if (!simulated()) return 0;  // Its process is gone, and the descriptor with it.
  const SystemCall call("close");
  world().close(number);
  return 0;
}

ssize_t __wrap_read(int number, void* bytes, size_t size) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_read(number, bytes, size);
  if (!simulated()) return refuse(EAGAIN);
  const SystemCall call("read");
  if (open->kind != Descriptor::Kind::pipe) return refuse(EBADF);
  Pipe& pipe = world().pipe(open->index);
  if (pipe.count == 0 || holdfast::sim::sin_of(world()) == holdfast::sim::Sin::wake_byte_left) return refuse(EAGAIN);
  const std::size_t count = std::min(size, pipe.count);
  pipe.count -= count;
  return static_cast<ssize_t>(count);
}

ssize_t __wrap_write(int number, const void* bytes, size_t size) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_write(number, bytes, size);
  // What cancels may be nobody's thread: a signal, as the world sends it.
  if (simulated()) {
    world().enter_call("write");
    if (const SimTime length = world().thread().torn; length != 0) world().sleep(length);
  }
  if (open->kind != Descriptor::Kind::pipe) return refuse(EBADF);
  Pipe& pipe = world().pipe(open->index);
  if (pipe.count >= 65536) return refuse(EAGAIN);
  pipe.count += size;
  world().pace().note_event(world().processes()[pipe.process]);
  // The other end is the one that was opened before it.
  world().wake_waiters(world().processes()[pipe.process], number - 1);
  return static_cast<ssize_t>(size);
}

void* __wrap_mmap(void* address, size_t size, int protection, int flags, int number, off_t offset) {
  if (!simulated()) return __real_mmap(address, size, protection, flags, number, offset);
  auto& page = world().process().pages.emplace_back();
  page.fill(0);
  return size <= sizeof page ? page.data() : MAP_FAILED;
}
void* __wrap_mmap64(void* address, size_t size, int protection, int flags, int number, off_t offset) {
  return __wrap_mmap(address, size, protection, flags, number, offset);
}

int __wrap_munmap(void* address, size_t size) { return simulated() ? 0 : __real_munmap(address, size); }

int __wrap_madvise(void* address, size_t size, int advice) {
  return simulated() ? 0 : __real_madvise(address, size, advice);
}

ssize_t __wrap_getrandom(void* bytes, size_t size, unsigned flags) {
  if (!simulated()) return __real_getrandom(bytes, size, flags);
  auto* out = static_cast<unsigned char*>(bytes);
  for (std::size_t index = 0; index < size; index += 8) {
    const std::uint64_t word = world().process().random.next();
    for (std::size_t byte = 0; byte < 8 && index + byte < size; ++byte)
      out[index + byte] = static_cast<unsigned char>(word >> (8 * byte));
  }
  return static_cast<ssize_t>(size);
}

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  if (!simulated()) return __real_clock_gettime(clock, time);
  const SystemCall call("clock_gettime");
  const SimTime now = world().local_time(world().process());
  time->tv_sec = now / second;
  time->tv_nsec = now % second;
  return 0;
}

// ---- Loops -------------------------------------------------------------------------------------------------------

// std::chrono::steady_clock::now(), whose time point is one number.
std::int64_t __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  static_assert(sizeof(std::chrono::steady_clock::time_point) == sizeof(std::int64_t) &&
                std::is_trivially_copyable_v<std::chrono::steady_clock::time_point> &&
                std::is_same_v<std::chrono::steady_clock::period, std::nano>);
  if (!simulated()) return __real__ZNSt6chrono3_V212steady_clock3nowEv();
  const SystemCall call("steady_clock::now");
  return world().local_time(world().process());
}

int __wrap_ioctl(int number, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  return simulated_descriptor(number) == nullptr ? __real_ioctl(number, request, argument) : 0;  // FIONBIO, of Asio.
}

int __wrap_eventfd(unsigned value, int flags) {
  if (!simulated()) return __real_eventfd(value, flags);
  return world().open_event();
}

int __wrap_timerfd_create(int clock, int flags) {
  if (!simulated()) return __real_timerfd_create(clock, flags);
  return world().open_timer();
}

int __wrap_timerfd_settime(int number, int flags, const itimerspec* at, itimerspec* before) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_timerfd_settime(number, flags, at, before);
  if (leaving()) return 0;
  const SimTime asked = world().now();
  const SystemCall call("timerfd_settime");
  const SimTime length = at->it_value.tv_sec * second + at->it_value.tv_nsec;
  // Asio's only instant is the one that has long passed.
  world().timer(open->index) = length == 0                        ? never
                               : (flags & TFD_TIMER_ABSTIME) != 0 ? world().now()
                                                                  : world().deadline_after(length);
  // It was stopped after it had worked out how long to sleep. So it sleeps too long, whatever becomes due meanwhile: Asio arms a
  // timer anew only for what comes before all others, and what comes first is overdue.
  SimTime& disturbed_until = world().process().disturbed_until;
  if (world().now() != asked && world().timer(open->index) != never)
    disturbed_until = std::max(disturbed_until, world().timer(open->index));
  return 0;
}

int __wrap_epoll_create1(int flags) {
  if (!simulated()) return __real_epoll_create1(flags);
  return world().open_epoll();
}

int __wrap_epoll_ctl(int number, int operation, int watched, epoll_event* event) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_epoll_ctl(number, operation, watched, event);
  if (leaving()) return 0;
  const SystemCall call("epoll_ctl");
  if (leaving()) return 0;
  Epoll& epoll = world().epoll(open->index);
  Interest* interest = epoll.find(watched);
  if ((interest != nullptr) == (operation == EPOLL_CTL_ADD)) return refuse(interest != nullptr ? EEXIST : ENOENT);
  if (operation == EPOLL_CTL_DEL) {
    std::erase(epoll.queue, watched);
    epoll.interests.erase(epoll.interests.begin() + (interest - epoll.interests.data()));
    return 0;
  }
  if (interest == nullptr) interest = &epoll.interests.emplace_back(Interest{.number = watched});
  interest->events = event->events;
  interest->data = event->data.u64;
  // What is there already is told as if it came now.
  epoll.add(*interest);
  world().wake_waiters(world().process(), number);
  return 0;
}

int __wrap_epoll_wait(int number, epoll_event* events, int most, int timeout) {
  Descriptor* const open = simulated_descriptor(number);
  if (open == nullptr) return __real_epoll_wait(number, events, most, timeout);
  const SystemCall call("epoll_wait");
  Thread& self = world().thread();
  const SimTime deadline = timeout < 0    ? never
                           : timeout == 0 ? world().now()
                                          : world().deadline_after(timeout * holdfast::sim::millisecond);
  self.interrupted = false;
  for (;;) {
    if (leaving()) {
      world().process().application->stop_loop();
      return refuse(EINTR);
    }
    Epoll& epoll = world().epoll(open->index);
    if (const int count = take_events(epoll, events, most); count != 0) return count;
    if (world().now() >= deadline) return 0;
    self.descriptors[0] = number;
    self.descriptor_count = 1;
    (void)world().block(std::min(deadline, std::max(next_time(epoll), world().now() + 1)));
    self.descriptor_count = 0;
    if (self.interrupted) {
      self.interrupted = false;
      return refuse(EINTR);
    }
  }
}

// ---- Names -------------------------------------------------------------------------------------------------------

int __wrap_getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  std::size_t node = 0;
  std::size_t dead = 0;
  bool silent = false;
  if (!simulated() || !holdfast::sim::read_host_name(name, node, dead, silent))
    return __real_getaddrinfo(name, service, hints, found);
  const SystemCall call("getaddrinfo");
  Resolution* const resolution = world().resolve(node);
  if (resolution == nullptr) return EAI_AGAIN;
  const std::size_t alive = world().random().index(dead + 1);
  for (std::size_t index = 0; index <= dead; ++index) {
    const Address address = index == alive ? Address::server : silent ? Address::silent : Address::refusing;
    sockaddr_in& place = resolution->addresses[index];
    place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(holdfast::sim::address_of(address));
    if (service != nullptr) place.sin_port = htons(static_cast<std::uint16_t>(std::atoi(service)));
    addrinfo& entry = resolution->entries[index];
    entry = {};
    entry.ai_family = AF_INET;
    entry.ai_socktype = SOCK_STREAM;
    entry.ai_addrlen = sizeof place;
    entry.ai_addr = reinterpret_cast<sockaddr*>(&place);
    entry.ai_next = index == dead ? nullptr : &resolution->entries[index + 1];
  }
  *found = resolution->entries;
  return 0;
}

// What was found is the process's as long as it lives.
void __wrap_freeaddrinfo(addrinfo* found) {
  if (!simulated()) __real_freeaddrinfo(found);
}

// ---- Threads -----------------------------------------------------------------------------------------------------

int __wrap_pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  if (!simulated()) return __real_pthread_create(id, attributes, start, argument);
  *id = static_cast<pthread_t>(world().add_thread(world().process(), start, argument));
  return 0;
}

int __wrap_pthread_join(pthread_t id, void** result) {
  if (!simulated()) return __real_pthread_join(id, result);
  Thread& self = world().thread();
  while (!world().thread_done(id)) {
    self.object = world().thread_at(id);
    (void)world().block(never);
    self.object = nullptr;
  }
  return 0;
}

// The world's threads go by themselves.
int __wrap_pthread_detach(pthread_t id) { return simulated() ? 0 : __real_pthread_detach(id); }

pthread_t __wrap_pthread_self() {
  return simulated() ? static_cast<pthread_t>(world().thread().id) : __real_pthread_self();
}

int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return simulated() ? 0 : __real_pthread_sigmask(how, set, before);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!simulated()) return __real_pthread_mutex_lock(mutex);
  Thread& self = world().thread();
  while (word_of(mutex) != 0) {
    self.object = mutex;
    (void)world().block(never);
    self.object = nullptr;
  }
  word_of(mutex) = 1;
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (!simulated()) return __real_pthread_mutex_unlock(mutex);
  word_of(mutex) = 0;
  world().wake_object(world().process(), mutex);
  return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!simulated()) return __real_pthread_cond_wait(condition, mutex);
  (void)__wrap_pthread_mutex_unlock(mutex);
  Thread& self = world().thread();
  self.object = condition;
  (void)world().block(never);
  self.object = nullptr;
  return __wrap_pthread_mutex_lock(mutex);
}

// Whoever is woken in vain waits on.
int __wrap_pthread_cond_signal(pthread_cond_t* condition) {
  if (!simulated()) return __real_pthread_cond_signal(condition);
  world().wake_object(world().process(), condition);
  return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!simulated()) return __real_pthread_cond_broadcast(condition);
  world().wake_object(world().process(), condition);
  return 0;
}

}  // extern "C"
