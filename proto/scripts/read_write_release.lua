-- Deletes our hold. Readers that are left keep the lock, and when a writer goes its other side may be one of them; where none
-- is left whose own time runs, the lock goes. A reader that goes wakes one waiter of every client, a writer wakes all:
-- Redisson's and ours. Needs no memory. A count beyond 100 is believed unseen, and so is a time that the server does not tell: in a
-- slot on the move it may be at the other master already.
-- KEYS[1] lock, ARGV[1] token, ARGV[2] channel. Returns 1, or 0 if it is not ours.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local lock, call, mode, message = KEYS[1], redis.call, 'read', '0'
local tag = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
if call('HDEL', lock, ARGV[1]) == 1 then
redis.pcall('DEL', tag .. ':' .. ARGV[1] .. ':rwlock_timeout:1')
elseif call('HDEL', lock, ARGV[1] .. ':write') == 1 then
mode, message = 'write', '1'
else
return 0
end
if call('HGET', lock, 'mode') ~= mode then
return 1
end
local fields = call('HGETALL', lock)
for index = 1, #fields, 2 do
local count = tonumber(fields[index + 1]) or 0
for place = 1, math.min(count, 100) do
if count > 100 or redis.pcall('PTTL', tag .. ':' .. fields[index] .. ':rwlock_timeout:' .. place) ~= -2 then
if mode == 'write' then
call('HSET', lock, 'mode', 'read')
redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2], message)
end
return 1
end
end
end
call('DEL', lock)
redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2], message)
return 1
