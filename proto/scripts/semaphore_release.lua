-- Gives our permit back, and tells the waiters of every client how many are free: Redisson's and ours. Needs no memory.
-- KEYS[1] how many are free; see semaphore_acquire.lua. ARGV[1] token. Returns 1, or 0 if it is not ours.
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local key, token = KEYS[1], ARGV[1]
local tag = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
local taken = tag .. ':timeout'
local ends = redis.call('ZSCORE', taken, token)
if not ends then
return 0
end
-- Where the server refuses to tell, nothing has been taken back yet that would be lost.
local known = redis.call('EXISTS', key)
-- Whoever may not count could not undo the rest either. Where only memory is short, it may count once something was written.
local counts = known == 1 and redis.pcall('INCRBY', key, 0)
if type(counts) == 'table' and not string.find(counts.err, 'OOM', 1, true) then
return counts
end
redis.call('ZREM', taken, token)
-- Where it is not known any more how many there are, whoever comes next says so.
if known == 0 then
return 1
end
local free = redis.pcall('INCRBY', key, 1)
if type(free) == 'table' then
redis.call('ZADD', taken, ends, token)
return free
end
if free > 0 then
redis.pcall(ARGV[2] or 'PUBLISH', 'redisson_sc:' .. tag, free)
end
return 1
