// SPDX-License-Identifier: MIT
//
// A server of callbacks: jobs contend for locks while the loop goes on with everything else, here a timer that ticks. One
// thread and one connection for all of them. Nothing is thrown: every failure comes as an error_code.
//
//     asio_callbacks [URL]
//
// Ctrl-C ends it in good order. Exit code 0 if every job was done.
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstdio>
#include <list>
#include <string_view>

#include "holdfast/asio.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

constexpr int job_count = 8;
constexpr int steps = 3;
constexpr Duration step_time = 25ms;
constexpr Duration tick_time = 50ms;
constexpr ByteView orders[] = {"holdfast/example/order/1", "holdfast/example/order/2"};

class Server {
 public:
  explicit Server(asio::io_context& loop)
      : client_(loop.get_executor()), ticker_(loop), signals_(loop, SIGINT, SIGTERM) {
    for (int number = 0; number < job_count; ++number) jobs_.emplace_back(*this, loop, number);
  }

  void start(std::string_view url) {
    tick();
    signals_.async_wait([this](std::error_code error, int) {
      if (!error) stop();
    });
    client_.async_connect(url, [this](std::error_code error) {
      if (error) {
        std::printf("connect: %s\n", error.message().c_str());
        return close();
      }
      for (Job& job : jobs_) job.start();
    });
  }
  [[nodiscard]] int done() const { return done_; }

 private:
  // One piece of work under one lock, written as a chain of what follows on what.
  class Job {
   public:
    Job(Server& server, asio::io_context& loop, int number)
        : server_(server),
          number_(number),
          order_(orders[number % 2]),
          lock_(server.client_, order_, {.lease = 5s}),
          timer_(loop) {}

    void start() {
      lock_.async_acquire(10s, [this](std::error_code error) {
        if (error) return end("was not begun", error);
        say("begins");
        do_step(1);
      });
    }
    // Whatever it waits for ends with an error.
    void stop() {
      lock_.cancel();
      timer_.cancel();
    }

   private:
    // held() is asked before every step that must not happen twice: it is a look at the clock.
    void do_step(int step) {
      if (!lock_.held()) return end("has lost its lock", Status::lock_lost);
      if (step > steps) return finish();
      timer_.expires_after(step_time);
      timer_.async_wait([this, step](std::error_code error) {
        if (!error) return do_step(step + 1);
        (void)lock_.post_release();
        end("was broken off", error);
      });
    }
    void finish() {
      say("ends");
      lock_.async_release([this](std::error_code error) {
        if (error) return end("may not have been protected to its end", error);
        server_.count_ended(true);
      });
    }
    void end(const char* what, std::error_code why) {
      say(what);
      std::printf("  %s\n", why.message().c_str());
      server_.count_ended(false);
    }
    void say(const char* what) const {
      std::printf("%.*s: job %d %s\n", static_cast<int>(order_.size()), order_.data(), number_, what);
    }

    Server& server_;
    int number_;
    ByteView order_;
    AsyncMutex lock_;
    asio::steady_timer timer_;
  };

  void tick() {
    ticker_.expires_after(tick_time);
    ticker_.async_wait([this](std::error_code error) {
      if (error) return;
      std::printf("tick\n");
      tick();
    });
  }
  void count_ended(bool done) {
    done_ += done ? 1 : 0;
    if (++ended_ == job_count) close();
  }
  void stop() {
    std::printf("stopping\n");
    client_.cancel();
    for (Job& job : jobs_) job.stop();
  }
  // A loop has work as long as a client is connected: run() returns behind this.
  void close() {
    ticker_.cancel();
    signals_.cancel();
    client_.async_close([](std::error_code error) {
      if (error) std::printf("close: %s\n", error.message().c_str());
    });
  }

  AsyncClient client_;
  std::list<Job> jobs_;
  asio::steady_timer ticker_;
  asio::signal_set signals_;
  int ended_ = 0;
  int done_ = 0;
};

}  // namespace

int main(int argument_count, char** arguments) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  asio::io_context loop(1);  // One thread runs it.
  Server server(loop);
  server.start(argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379");
  loop.run();
  return server.done() == job_count ? 0 : 1;
}
