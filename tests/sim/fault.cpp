// SPDX-License-Identifier: MIT
#include "fault.hpp"

namespace holdfast::sim {

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::client_pause: return "client pause";
    case Fault::client_pause_at_call: return "client pause at call";
    case Fault::client_crash: return "client crash";
    case Fault::client_power_loss: return "client power loss";
    case Fault::timer_starvation: return "timer starvation";
    case Fault::thread_starvation: return "thread starvation";
    case Fault::signal_interruption: return "signal interruption";
    case Fault::cancel_at_call: return "cancel at call";
    case Fault::torn_cancel: return "torn cancel";
    case Fault::connect_anew: return "connect anew";
    case Fault::wrong_password: return "wrong password";
    case Fault::server_pause: return "server pause";
    case Fault::restart: return "restart";
    case Fault::restart_empty: return "restart empty";
    case Fault::stale_failover: return "stale failover";
    case Fault::server_down: return "server down";
    case Fault::script_flush: return "script flush";
    case Fault::client_kill: return "client kill";
    case Fault::max_clients: return "max clients";
    case Fault::refused_subscriber: return "refused subscriber";
    case Fault::loading: return "loading";
    case Fault::read_only: return "read only";
    case Fault::out_of_memory: return "out of memory";
    case Fault::busy_script: return "busy script";
    case Fault::too_few_replicas: return "too few replicas";
    case Fault::master_down: return "master down";
    case Fault::disk_error: return "disk error";
    case Fault::no_permission: return "no permission";
    case Fault::eviction: return "eviction";
    case Fault::flush_all: return "flush all";
    case Fault::foreign_delete: return "foreign delete";
    case Fault::foreign_set: return "foreign set";
    case Fault::foreign_field: return "foreign field";
    case Fault::foreign_type: return "foreign type";
    case Fault::foreign_persist: return "foreign persist";
    case Fault::foreign_expire: return "foreign expire";
    case Fault::foreign_fence: return "foreign fence";
    case Fault::clock_forward: return "clock forward";
    case Fault::clock_back: return "clock back";
    case Fault::clock_rate: return "clock rate";
    case Fault::reset: return "reset";
    case Fault::reset_at_stage: return "reset at stage";
    case Fault::half_open_up: return "half open up";
    case Fault::half_open_down: return "half open down";
    case Fault::stall: return "stall";
    case Fault::latency_spike: return "latency spike";
    case Fault::refused_connect: return "refused connect";
    case Fault::black_hole: return "black hole";
    case Fault::second_black_hole: return "second black hole";
    case Fault::slow_connect: return "slow connect";
    case Fault::slow_handshake: return "slow handshake";
    case Fault::slow_resolver: return "slow resolver";
    case Fault::failing_resolver: return "failing resolver";
    case Fault::dead_address: return "dead address";
    case Fault::dribble: return "dribble";
    case Fault::short_write: return "short write";
    case Fault::full_socket: return "full socket";
    case Fault::late_delivery: return "late delivery";
    case Fault::hostile_bytes: return "hostile bytes";
    case Fault::wrong_shape: return "wrong shape";
    case Fault::unasked_reply: return "unasked reply";
    case Fault::lost_message: return "lost message";
    case Fault::duplicated_message: return "duplicated message";
    case Fault::forged_message: return "forged message";
    case Fault::output_limit: return "output limit";
    case Fault::unasked_between: return "unasked between";
    case Fault::no_descriptors: return "no descriptors";
    case Fault::no_network: return "no network";
    case Fault::slot_move: return "slot move";
    case Fault::move_called_off: return "move called off";
    case Fault::slot_down: return "slot down";
    case Fault::master_change: return "master change";
    case Fault::old_news: return "old news";
    case Fault::losing_change: return "losing change";
  }
  return "?";
}

bool is_switch(Fault fault) noexcept {
  return fault == Fault::cancel_at_call || fault == Fault::torn_cancel || fault == Fault::connect_anew ||
         fault == Fault::dead_address;
}

bool drawn_apart(Fault fault) noexcept {
  return is_switch(fault) || fault == Fault::refused_subscriber ||
         (fault >= Fault::second_black_hole && fault <= Fault::failing_resolver);
}

bool leaves_reach(Fault fault) noexcept {
  return drawn_apart(fault) || is_scarcity(fault) || fault == Fault::signal_interruption ||
         fault == Fault::script_flush || fault == Fault::max_clients || fault == Fault::refused_connect ||
         fault == Fault::black_hole || fault == Fault::lost_message || fault == Fault::duplicated_message ||
         fault == Fault::forged_message;
}

bool outside_model(Fault fault) noexcept {
  switch (fault) {
    case Fault::restart_empty:
    case Fault::stale_failover:
    case Fault::eviction:
    case Fault::flush_all:
    case Fault::foreign_delete:
    case Fault::foreign_set:
    case Fault::foreign_field:
    case Fault::foreign_type:
    case Fault::foreign_expire:
    case Fault::clock_forward:
    case Fault::losing_change: return true;
    case Fault::client_pause:
    case Fault::client_pause_at_call:
    case Fault::client_crash:
    case Fault::client_power_loss:
    case Fault::timer_starvation:
    case Fault::thread_starvation:
    case Fault::signal_interruption:
    case Fault::cancel_at_call:
    case Fault::torn_cancel:
    case Fault::connect_anew:
    case Fault::wrong_password:
    case Fault::server_pause:
    case Fault::restart:
    case Fault::server_down:
    case Fault::script_flush:
    case Fault::client_kill:
    case Fault::max_clients:
    case Fault::refused_subscriber:
    case Fault::loading:
    case Fault::read_only:
    case Fault::out_of_memory:
    case Fault::busy_script:
    case Fault::too_few_replicas:
    case Fault::master_down:
    case Fault::disk_error:
    case Fault::no_permission:
    case Fault::foreign_persist:
    case Fault::foreign_fence:
    case Fault::clock_back:
    case Fault::clock_rate:
    case Fault::reset:
    case Fault::reset_at_stage:
    case Fault::half_open_up:
    case Fault::half_open_down:
    case Fault::stall:
    case Fault::latency_spike:
    case Fault::refused_connect:
    case Fault::black_hole:
    case Fault::second_black_hole:
    case Fault::slow_connect:
    case Fault::slow_handshake:
    case Fault::slow_resolver:
    case Fault::failing_resolver:
    case Fault::dead_address:
    case Fault::dribble:
    case Fault::short_write:
    case Fault::full_socket:
    case Fault::late_delivery:
    case Fault::hostile_bytes:
    case Fault::wrong_shape:
    case Fault::unasked_reply:
    case Fault::lost_message:
    case Fault::duplicated_message:
    case Fault::forged_message:
    case Fault::output_limit:
    case Fault::unasked_between:
    case Fault::no_descriptors:
    case Fault::no_network:
    case Fault::slot_move:
    case Fault::move_called_off:
    case Fault::slot_down:
    case Fault::master_change:
    case Fault::old_news: return false;
  }
  return false;
}

}  // namespace holdfast::sim
