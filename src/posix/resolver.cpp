// SPDX-License-Identifier: MIT
#include "holdfast/detail/resolver.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "addresses.hpp"
#include "holdfast/detail/shared_value.hpp"
#include "start_thread.hpp"

namespace holdfast {

namespace {

enum class Stage : std::uint32_t { asking, answered, forgotten };

}  // namespace

struct Resolver::Page {
  SharedValue<std::uint32_t> stage;
  pid_t process;
  int answered;  // The thread's end of the pipe.
  std::uint16_t port;
  std::uint8_t count;
  char host[host_size_max + 1];
  SocketAddress addresses[addresses_max];
};

void* Resolver::run(void* argument) noexcept {
  Page& page = *static_cast<Page*>(argument);
  page.count = look_up(page.host, page.port, page.addresses);
  const int answered = page.answered;
  if (static_cast<Stage>(page.stage.exchange(static_cast<std::uint32_t>(Stage::answered))) == Stage::forgotten)
    (void)::munmap(argument, sizeof(Page));
  (void)!::write(answered, "", 1);  // That wakes whoever asked.
  ::close(answered);
  return nullptr;
}

// False: there is no thread to be had now.
bool Resolver::ask(NameQuestion& question, const char* host, std::uint16_t port) noexcept {
  auto& self = static_cast<Resolver&>(question);
  self.forget();
  void* const place = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    (void)::munmap(place, sizeof(Page));
    return false;
  }
  auto* const page = static_cast<Page*>(place);  // All zero: asking.
  page->process = ::getpid();
  page->answered = ends[1];
  page->port = port;
  std::strncpy(page->host, host, host_size_max);

  pthread_t thread{};
  if (start_thread(thread, run, page) != 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    (void)::munmap(place, sizeof(Page));
    return false;
  }
  (void)::pthread_detach(thread);
  self.page_ = page;
  self.answered_ = ends[0];
  return true;
}

void Resolver::poll(Connection& connection) noexcept {
  if (page_ == nullptr || static_cast<Stage>(page_->stage.load()) != Stage::answered) return;
  connection.take_addresses(page_->addresses, page_->count);
  forget();
}

void Resolver::forget() noexcept {
  if (page_ == nullptr) return;
  const bool inherited = page_->process != ::getpid();  // In a forked child there is no such thread.
  if (inherited) ::close(page_->answered);
  ::close(answered_);
  answered_ = -1;
  const auto before = static_cast<Stage>(page_->stage.exchange(static_cast<std::uint32_t>(Stage::forgotten)));
  if (inherited || before == Stage::answered) (void)::munmap(page_, sizeof(Page));
  page_ = nullptr;
}

}  // namespace holdfast
