-- Deletes our hold and gives the lock to the first in the queue who lives, which costs him no race; with nobody there, wakes a
-- waiter of every client that waits without a queue. Who does not hold it leaves the queue. Needs no memory.
-- KEYS[1] lock, ARGV[1] owner field. Returns 1, or 0 if it is not ours. See fair_acquire.lua.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local call, lock, me = redis.call, KEYS[1], ARGV[1]
local tag = lock:find('{', 1, true) and lock or '{' .. lock .. '}'
local queue, beat = 'holdfast_queue:' .. tag, 'holdfast_beat:' .. tag .. ':'
local deleted = redis.pcall('HDEL', lock, me)
if deleted ~= 1 then
-- Where one of these is refused, the other keeps it from being given the lock.
redis.pcall('DEL', beat .. me)
call('ZREM', queue, me)
return deleted
end
local left = redis.pcall('EXISTS', lock)
if left == 1 then
return 1
end
-- Our hold is gone: what keeps us from giving the lock away leaves it free. So does a slot on the move, which has no place for it
-- here any more.
local given, head = pcall(function()
local head
repeat
head = left == 0 and call('ZPOPMIN', queue)[1]
until not head or call('DEL', beat .. head) == 1 and head ~= me
if head then
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
call('PEXPIRE', lock, 3000)
call('HSET', lock, head, '1')
call('PEXPIRE', lock, 3000)
redis.pcall('PUBLISH', 'holdfast_fair:{' .. head:match('[^:]*') .. '}', head)
end
return head
end)
if not given or not head then
redis.pcall(ARGV[2] or 'PUBLISH', 'redisson_lock__channel:' .. tag, '0')
end
return 1
