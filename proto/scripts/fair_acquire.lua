-- One beat of a waiter. Takes the lock if it is free and nobody who lives is ahead, and gives it to the first who is ahead.
-- Else enqueues us, and remembers for 3 s that we live. All of it by the server's clock.
-- KEYS[1] lock, ARGV[1] owner field, ARGV[2] lease in milliseconds, ARGV[3] 1: we wait, else nothing is enqueued; ARGV[4] 1:
-- with a fence, as of fenced_acquire.lua. Returns OK or the fence, also where another has given us the lock; or in how many
-- milliseconds we are to ask again.
-- Beside the lock: `holdfast_queue`, who waits by when he came, and `holdfast_beat` of each. Who is given the lock is told over
-- the channel of his client, by his field. He has 3 s to confirm it. So is he whose field has a negative ordinal and who is in
-- our way: his hold may be one that nobody uses.
local call, lock, me = redis.call, KEYS[1], ARGV[1]
local tag = lock:find('{') and lock or '{' .. lock .. '}'
local row, beat, left, t = 'holdfast_queue:' .. tag, 'holdfast_beat:' .. tag .. ':', call('PTTL', lock), call('TIME')
local top = left == -2 and {} or redis.pcall('HKEYS', lock)
-- WRONGTYPE: what is no hash is another's. Who may not look does not know whether it is ours.
if top.err and not top.err:find('^W') then
return top
end
top = top[1]
while left == -2 and not top do
top = call('ZPOPMIN', row)[1] or me
top = (call('DEL', beat .. top) == 1 or top == me) and top
end
local ours, out, now = top == me, {ok='OK'}, t[1] * 1e6 + t[2]
if ours and ARGV[4] == '1' then
local key = 'redisson_lock_token:' .. tag
call('INCR', key)
out = call('GET', key)
if out - now < 0 then
out = ('%.0f'):format(now)
call('SET', key, out)
end
end
if left == -2 then
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
left = ours and ARGV[2] or 3000
call('PEXPIRE', lock, left)
call('HSET', lock, top, '1')
call('PEXPIRE', lock, left)
elseif top then
top = top:find(':%-') and top
end
if ours then
if ARGV[2] - left > 0 then
call('PEXPIRE', lock, ARGV[2])
end
return out
end
if top then
redis.pcall('PUBLISH', 'holdfast_fair:{' .. top:match('[^:]*') .. '}', top)
end
if ARGV[3] == '1' then
-- Where PEXPIRE is refused, nothing has been created yet. It is a write that needs no memory: what follows passes behind it.
call('PEXPIRE', beat .. me, 3000)
call('SET', beat .. me, '', 'PX', 3000)
-- Where the clock was put back we have come now.
if call('ZADD', row, 'NX', now, me) == 0 and call('ZSCORE', row, me) - now > 0 then
call('ZADD', row, now, me)
end
call('PEXPIRE', row, 60000)
end
-- Where the lock has no TTL, too.
return math.min(left % 1e9, 1e3)
