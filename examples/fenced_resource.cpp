// SPDX-License-Identifier: MIT
//
// Why a lock alone is not enough, and what is: two workers write to one order. The first is paused beyond its lease, as a
// garbage collector, a page fault or a suspended machine can do to anyone; the second takes the lock and writes. When the
// first comes back it still means to write. The resource refuses it, by its fence: once in Redis, once in SQLite.
//
//     fenced_resource [URL]
//
// Exit code 0 if both stale writes were refused.
#include <poll.h>
#include <sqlite3.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string_view>

#include "holdfast/holdfast.hpp"

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

struct Close {
  void operator()(sqlite3* database) const noexcept { sqlite3_close(database); }
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

// An order in SQLite, with the largest fence that has written to it.
Database open_orders() {
  sqlite3* database = nullptr;
  if (sqlite3_open(":memory:", &database) != SQLITE_OK) return nullptr;
  Database orders(database);
  constexpr const char* schema =
      "CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL, fence INTEGER NOT NULL DEFAULT 0);"
      "INSERT INTO orders (id, state) VALUES (42, 'new');";
  if (sqlite3_exec(database, schema, nullptr, nullptr, nullptr) != SQLITE_OK) return nullptr;
  return orders;
}

// The check and the write are one statement, so that nothing comes between them. True if it was written.
bool write_order(sqlite3& orders, std::uint64_t fence, const char* state) {
  sqlite3_stmt* prepared = nullptr;
  constexpr const char* update = "UPDATE orders SET state = ?1, fence = ?2 WHERE id = 42 AND fence <= ?2";
  if (sqlite3_prepare_v2(&orders, update, -1, &prepared, nullptr) != SQLITE_OK) return false;
  const Statement statement(prepared);
  sqlite3_bind_text(prepared, 1, state, -1, SQLITE_STATIC);
  sqlite3_bind_int64(prepared, 2, static_cast<sqlite3_int64>(fence));  // Below 2^63, as SQLite's integers are.
  return sqlite3_step(prepared) == SQLITE_DONE && sqlite3_changes(&orders) == 1;
}

int fail(const char* what, Status status) {
  std::printf("%s: %s. %s %s\n", what, to_string(status), cause(status), remedy(status));
  return 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  Client client;
  Status status = client.connect(std::string_view(argument_count > 1 ? arguments[1] : "redis://127.0.0.1:6379"));
  if (status != Status::ok) return fail("connect", status);
  const Database orders = open_orders();
  if (orders == nullptr) return fail("sqlite", Status::system_error);

  Owner first_owner(client);
  Owner second_owner(client);
  FencedLock first(first_owner, "holdfast/order/42", {.lease = 200ms});
  FencedLock second(second_owner, "holdfast/order/42", {.lease = 10s});
  const Key resource("holdfast/example/order");

  if (status = first.acquire(5s); status != Status::ok) return fail("the first worker", status);
  const std::uint64_t stale = first.fence();
  std::printf("the first worker holds the lock, fence %" PRIu64 ", and is paused\n", stale);
  (void)::poll(nullptr, 0, 300);

  if (status = second.acquire(5s); status != Status::ok) return fail("the second worker", status);
  std::printf("the second worker holds the lock, fence %" PRIu64 ", and writes\n", second.fence());
  bool written = false;
  if (status = fenced_set(client, resource, second.fence(), "paid", written); status != Status::ok)
    return fail("write to Redis", status);
  const bool fresh_accepted = written && write_order(*orders, second.fence(), "paid");

  std::printf("the first worker comes back; held() says %s, but it writes all the same\n", first.held() ? "yes" : "no");
  if (status = fenced_set(client, resource, stale, "cancelled", written); status != Status::ok)
    return fail("write to Redis", status);
  const bool stale_in_sqlite = write_order(*orders, stale, "cancelled");
  std::printf("its write to Redis was %s, its write to SQLite was %s\n", written ? "ACCEPTED" : "refused",
              stale_in_sqlite ? "ACCEPTED" : "refused");

  (void)second.release();
  return fresh_accepted && !written && !stale_in_sqlite ? 0 : 1;
}
