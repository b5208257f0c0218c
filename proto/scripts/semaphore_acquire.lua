-- Takes a permit if one is free; takes back those whose time is over if none is. The first who asks sets how many there are.
-- Permits that are taken stand in a sorted set beside the key, each with the instant of its end by the server's clock, as
-- Redisson looks for them.
-- KEYS[1] how many are free, ARGV[1] token, ARGV[2] lease in milliseconds, ARGV[3] how many there are in all, or 0 for as many as
-- were set. Returns OK; PERMITS if another number was set, or none; or how long the next end is away in milliseconds (-1: none
-- has an end).
-- The last ARGV, where there is one, is the command that publishes: SPUBLISH in a cluster.
local call, key, all = redis.call, KEYS[1], tonumber(ARGV[3])
local tag = string.find(key, '{', 1, true) and key or '{' .. key .. '}'
local taken, free = tag .. ':timeout', call('GET', key)
if free and not string.find(free, '^%-?%d+$') then
return redis.error_reply('WRONGTYPE the key is no number of permits')
end
local held = call('ZCARD', taken)
if free and all ~= 0 and free + held ~= all or not free and all == 0 then
return {ok = 'PERMITS'}
end
-- How many come free here: waiters are told, Redisson's also where nobody had set a number.
local time, back = call('TIME'), 0
if not free then
free, back = all - held, all - held
call('SET', key, free)
end
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
if tonumber(free) < 1 then
local first = call('ZRANGE', taken, 0, 0, 'WITHSCORES')[2]
if not first or first - now > 0 then
return first and first - now or -1
end
-- Where INCRBY is refused, nothing has been taken back yet that would be lost.
call('INCRBY', key, 0)
back = call('ZREMRANGEBYSCORE', taken, '-inf', now)
if call('INCRBY', key, back) < 1 then
return 0
end
end
-- Counted first: whoever may do that may also take it back, where the rest is refused. A request that ran twice has one permit.
free = call('INCRBY', key, -1)
local added = redis.pcall('ZADD', taken, now + ARGV[2], ARGV[1])
if added ~= 1 then
free = call('INCRBY', key, 1)
if added ~= 0 then
return added
end
end
if back > 1 and free > 0 then
redis.pcall(ARGV[4] or 'PUBLISH', 'redisson_sc:' .. tag, free)
end
return {ok = 'OK'}
