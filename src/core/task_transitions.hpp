// SPDX-License-Identifier: MIT
//
// The life of a call, whole. A pair that is not listed is illegal: the task asserts.
#pragma once

#include <cstdint>

#include "holdfast/core/lock_task.hpp"

namespace holdfast {

enum class TaskInput : std::uint8_t {
  none,      // Nothing has happened that this stage waits for.
  go,        // It has.
  skip,      // The machine is asked without it: what it says is the outcome.
  again,     // What was asked had not left: it may be asked once more.
  retry,     // Denied, and another attempt is worth it.
  await,     // The connection went away under a release.
  granted,   // To be kept alive.
  unwanted,  // Not wanted any more, or too late, with the answer still to come.
  confirm,   // Granted, and to be confirmed by replicas.
  let_go,    // Cancelled, or not confirmed, with something in hand that must not stay.
  end,       // The outcome is known.
};

struct TaskTransition {
  TaskStage from;
  TaskInput input;
  TaskStage to;
  TaskAct act;  // sleep: step() goes on, unless it stays where it is.
};

inline constexpr TaskTransition task_transitions[] = {
    {TaskStage::idle, TaskInput::none, TaskStage::idle, TaskAct::over},

    {TaskStage::attempt, TaskInput::go, TaskStage::link, TaskAct::attempt},
    {TaskStage::attempt, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::link, TaskInput::none, TaskStage::link, TaskAct::sleep},
    {TaskStage::link, TaskInput::go, TaskStage::room, TaskAct::sleep},
    {TaskStage::link, TaskInput::skip, TaskStage::asking, TaskAct::ask},
    {TaskStage::link, TaskInput::retry, TaskStage::retry, TaskAct::listen},
    {TaskStage::link, TaskInput::let_go, TaskStage::idle, TaskAct::let_go},
    {TaskStage::link, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::room, TaskInput::none, TaskStage::room, TaskAct::sleep},
    {TaskStage::room, TaskInput::go, TaskStage::asking, TaskAct::ask},
    {TaskStage::room, TaskInput::skip, TaskStage::asking, TaskAct::ask},
    {TaskStage::room, TaskInput::again, TaskStage::link, TaskAct::sleep},
    {TaskStage::room, TaskInput::retry, TaskStage::retry, TaskAct::listen},
    {TaskStage::room, TaskInput::let_go, TaskStage::idle, TaskAct::let_go},
    {TaskStage::room, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::asking, TaskInput::none, TaskStage::asking, TaskAct::sleep},
    {TaskStage::asking, TaskInput::go, TaskStage::answer, TaskAct::sleep},
    {TaskStage::asking, TaskInput::again, TaskStage::link, TaskAct::sleep},
    {TaskStage::asking, TaskInput::retry, TaskStage::retry, TaskAct::listen},
    {TaskStage::asking, TaskInput::await, TaskStage::compensation, TaskAct::sleep},
    {TaskStage::asking, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::answer, TaskInput::none, TaskStage::answer, TaskAct::sleep},
    {TaskStage::answer, TaskInput::again, TaskStage::link, TaskAct::sleep},
    {TaskStage::answer, TaskInput::retry, TaskStage::retry, TaskAct::listen},
    {TaskStage::answer, TaskInput::await, TaskStage::compensation, TaskAct::sleep},
    {TaskStage::answer, TaskInput::confirm, TaskStage::confirm, TaskAct::confirm},
    {TaskStage::answer, TaskInput::granted, TaskStage::answer, TaskAct::keep},
    {TaskStage::answer, TaskInput::unwanted, TaskStage::answer, TaskAct::give_up},
    {TaskStage::answer, TaskInput::let_go, TaskStage::idle, TaskAct::let_go},
    {TaskStage::answer, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::confirm, TaskInput::none, TaskStage::confirm, TaskAct::sleep},
    {TaskStage::confirm, TaskInput::go, TaskStage::answer, TaskAct::sleep},
    {TaskStage::confirm, TaskInput::let_go, TaskStage::answer, TaskAct::let_go},

    {TaskStage::retry, TaskInput::none, TaskStage::retry, TaskAct::sleep},
    {TaskStage::retry, TaskInput::go, TaskStage::attempt, TaskAct::sleep},
    {TaskStage::retry, TaskInput::end, TaskStage::idle, TaskAct::over},

    {TaskStage::compensation, TaskInput::none, TaskStage::compensation, TaskAct::sleep},
    {TaskStage::compensation, TaskInput::end, TaskStage::idle, TaskAct::over},
};

inline constexpr int task_stage_count = static_cast<int>(TaskStage::compensation) + 1;
inline constexpr int task_input_count = static_cast<int>(TaskInput::end) + 1;

// The list above as a table to look up.
struct TaskTransitionTable {
  struct Cell {
    TaskStage to = TaskStage::idle;
    TaskAct act = TaskAct::over;
    bool legal = false;
  };
  Cell cells[task_stage_count][task_input_count];

  consteval TaskTransitionTable() noexcept : cells() {
    for (const TaskTransition& transition : task_transitions)
      cells[static_cast<int>(transition.from)][static_cast<int>(transition.input)] = {transition.to, transition.act,
                                                                                      true};
  }
};
inline constexpr TaskTransitionTable task_transition_table;

}  // namespace holdfast
