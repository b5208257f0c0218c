// SPDX-License-Identifier: MIT
#include "model_redis.hpp"

#include "resp_request_parser.hpp"
#include "server_state.hpp"

namespace holdfast::sim {

ModelRedis::ModelRedis(Settings settings) : state_(std::make_unique<ServerState>(std::move(settings))) {}
ModelRedis::~ModelRedis() = default;

ModelRedis::ConnectionId ModelRedis::accept() {
  ServerState& server = *state_;
  const ConnectionId id = server.next_connection++;
  Connection& connection = server.connections[id];
  connection.id = id;
  if (server.by_client_id.size() + server.faults.other_clients >= server.settings.clients_max) {
    connection.output = "-ERR max number of clients reached\r\n";
    connection.closed = true;
    return id;
  }
  connection.client_id = server.next_client_id++;
  server.by_client_id[connection.client_id] = id;
  return id;
}

std::size_t ModelRedis::receive(ConnectionId id, std::string_view bytes) {
  ServerState& server = *state_;
  const auto found = server.connections.find(id);
  if (found == server.connections.end()) return 0;
  Connection& connection = found->second;
  if (connection.closed || connection.closing) return 0;
  // Usually requests come whole and are read where they are.
  std::string kept;
  if (!connection.input.empty()) {
    connection.input += bytes;
    kept.swap(connection.input);
    bytes = kept;
  }
  std::size_t executed = 0;
  std::size_t at = 0;
  while (at < bytes.size() && !connection.closed && !connection.closing && !connection.wait) {
    std::size_t size = 0;
    std::string refusal;
    const bool authenticated = server.settings.password.empty() || connection.authenticated;
    const RequestOutcome outcome = read_request(bytes.substr(at), authenticated, server.parsed_words, size, refusal);
    if (outcome == RequestOutcome::need_more) break;
    if (outcome == RequestOutcome::refused) {
      ReplyWriter(connection.output).error(refusal);
      connection.closing = true;
      break;
    }
    at += size;
    if (server.parsed_words.empty()) continue;
    server.execute(connection, server.parsed_words);
    ++executed;
  }
  server.request = {};
  server.request_from = 0;
  if (connection.closing) server.close_by_server(connection);
  if (!connection.closed) connection.input.assign(bytes.substr(at));
  if (connection.gone) connection.output.clear();
  return executed;
}

std::size_t ModelRedis::receive(ConnectionId connection, std::string_view bytes, WallMicros now) {
  set_now(now);
  return receive(connection, bytes);
}

std::optional<ModelRedis::Wait> ModelRedis::wait_of(ConnectionId id) const {
  const auto found = state_->connections.find(id);
  if (found == state_->connections.end() || found->second.closed) return std::nullopt;
  return found->second.wait;
}

std::size_t ModelRedis::answer_wait(ConnectionId id, std::int64_t replicas) {
  Connection& connection = state_->connections.find(id)->second;
  connection.wait.reset();
  if (!connection.gone) ReplyWriter(connection.output).integer(replicas);
  return receive(id, {});
}

std::string ModelRedis::take_output(ConnectionId id) {
  std::string output;
  const auto found = state_->connections.find(id);
  if (found != state_->connections.end()) output.swap(found->second.output);
  return output;
}

std::size_t ModelRedis::output_size(ConnectionId id) const {
  const auto found = state_->connections.find(id);
  return found == state_->connections.end() ? 0 : found->second.output.size();
}

bool ModelRedis::wants_attention(ConnectionId id) const {
  const auto found = state_->connections.find(id);
  return found == state_->connections.end() || found->second.closed || !found->second.output.empty();
}

bool ModelRedis::closed(ConnectionId id) const {
  const auto found = state_->connections.find(id);
  return found == state_->connections.end() || found->second.closed;
}

void ModelRedis::close(ConnectionId id) {
  const auto found = state_->connections.find(id);
  if (found == state_->connections.end()) return;
  if (found->second.closed) {
    state_->connections.erase(found);
    return;
  }
  found->second.gone = true;
  found->second.output.clear();
}

void ModelRedis::receive_end(ConnectionId id) {
  const auto found = state_->connections.find(id);
  if (found == state_->connections.end()) return;
  state_->close_by_server(found->second);
  state_->connections.erase(found);
}

void ModelRedis::set_now(WallMicros now) {
  if (state_->now == now) return;
  state_->now = now;
  if (state_->settings.active_expiry) state_->expire_all();
}

void ModelRedis::expire(WallMicros now) {
  state_->now = now;
  const Faults before = state_->faults;
  state_->faults.loading = state_->faults.replica = false;
  state_->expire_all();
  state_->faults.loading = before.loading;
  state_->faults.replica = before.replica;
}

WallMicros ModelRedis::now() const { return state_->now; }

std::optional<WallMicros> ModelRedis::next_expiry() const {
  std::optional<WallMicros> first;
  for (const Keyspace& keys : state_->databases) {
    std::int64_t when = 0;
    if (keys.first_to_expire(when) != nullptr && (!first || (when + 1) * 1000 < *first)) first = (when + 1) * 1000;
  }
  return first;
}

ModelRedis::Faults& ModelRedis::faults() { return state_->faults; }

void ModelRedis::restart(Data data, std::string_view run_id) {
  ServerState& server = *state_;
  for (auto& [id, connection] : server.connections) server.close_by_server(connection);
  std::erase_if(server.connections, [](const auto& pair) { return pair.second.gone; });
  server.pubsub.clear();
  server.shard_pubsub.clear();
  server.scripts.flush();
  server.next_client_id = 1;
  server.started = server.now;
  server.settings.run_id = run_id;
  server.replication_id.assign(run_id.rbegin(), run_id.rend());
  server.second_offset = -1;
  if (data == Data::lost) flush();
}

void ModelRedis::promote(std::string_view replication_id) {
  state_->replication_id = replication_id;
  state_->second_offset = state_->now / 1'000'000 + 1;
}

void ModelRedis::set_age(WallMicros age) { state_->started = state_->now - age; }

void ModelRedis::flush() {
  int database = 0;
  for (Keyspace& keys : state_->databases) {
    if (keys.size() != 0) {
      keys.clear();
      state_->tell({.kind = EffectKind::flushed, .database = database});
    }
    ++database;
  }
}

bool ModelRedis::evict(std::string_view key, int database) {
  const std::string name(key);
  if (!state_->databases[static_cast<std::size_t>(database)].erase(name)) return false;
  state_->tell({.kind = EffectKind::evicted, .database = database, .key = name});
  return true;
}

void ModelRedis::flush_scripts() { state_->scripts.flush(); }

void ModelRedis::kill(ConnectionId id) {
  const auto found = state_->connections.find(id);
  if (found == state_->connections.end()) return;
  state_->close_by_server(found->second);
  if (found->second.gone) state_->connections.erase(found);
}

Databases ModelRedis::copy_data() const { return state_->databases; }

void ModelRedis::load_data(const Databases& data) {
  state_->databases = data;
  if (state_->settings.active_expiry) state_->expire_all();
}

void ModelRedis::end_shard_channels(const std::function<bool(std::string_view channel)>& left) {
  for (auto& [id, connection] : state_->connections) {
    const std::vector<std::string> channels = connection.shard_channels;
    for (const std::string& channel : channels)
      if (left(channel)) state_->end_shard_channel(connection, channel);
  }
}

const Entry* ModelRedis::find_stored(std::string_view key, int database) const {
  const Keyspace& keys = state_->databases[static_cast<std::size_t>(database)];
  return keys.find(key);
}

const Entry* ModelRedis::find(std::string_view key, int database) const {
  const Entry* const entry = find_stored(key, database);
  if (entry == nullptr || (entry->expiry_ms != no_expiry && state_->now_ms() > entry->expiry_ms)) return nullptr;
  return entry;
}

std::vector<std::string> ModelRedis::keys(int database) const {
  std::vector<std::string> all = state_->databases[static_cast<std::size_t>(database)].keys();
  std::erase_if(all, [&](const std::string& key) { return find(key, database) == nullptr; });
  return all;
}

std::vector<ModelRedis::ConnectionId> ModelRedis::subscribers(std::string_view channel) const {
  std::vector<ConnectionId> all = state_->pubsub.subscribers(channel);
  const std::vector<ConnectionId>& of_shard = state_->shard_pubsub.subscribers(channel);
  all.insert(all.end(), of_shard.begin(), of_shard.end());
  return all;
}

bool ModelRedis::hears(std::string_view channel) const { return !state_->pubsub.subscribers(channel).empty(); }

std::size_t ModelRedis::connection_count() const { return state_->by_client_id.size(); }

std::int64_t ModelRedis::client_id(ConnectionId id) const {
  const auto found = state_->connections.find(id);
  return found == state_->connections.end() ? 0 : found->second.client_id;
}

const ModelRedis::Settings& ModelRedis::settings() const { return state_->settings; }

void ModelRedis::set_gate(Gate gate) { state_->gate = std::move(gate); }

void ModelRedis::set_bus(Bus bus) { state_->bus = std::move(bus); }

void ModelRedis::hear(std::string_view channel, std::string_view payload) {
  state_->publish(state_->pubsub, "message", channel, payload);
}

void ModelRedis::observe(Observer observer) { state_->observer = std::move(observer); }

}  // namespace holdfast::sim
