-- Puts the end of each permit that is ours off. Never shortens. One that fails does not keep the others from theirs. A permit
-- whose time is over and that nobody has taken back is still ours.
-- KEYS how many are free, of each semaphore; see semaphore_acquire.lua. ARGV a token and a lease in milliseconds for each.
-- Returns for each 1 if its lease runs at least so long, 0 if it is not ours, -1 if the server refused; asked of one key alone,
-- the server's own words are the reply.
local answers, call, time = {}, redis.pcall, redis.call('TIME')
local now = math.ceil(time[1] * 1000 + time[2] / 1000)
for index, key in ipairs(KEYS) do
local token, ends = ARGV[2 * index - 1], now + ARGV[2 * index]
local taken = (string.find(key, '{', 1, true) and key or '{' .. key .. '}') .. ':timeout'
local answer = call('ZSCORE', taken, token)
if not answer then
answer = 0
elseif type(answer) == 'string' then
if tonumber(answer) < ends then
-- A write that needs no memory: a server without any takes the next one as well.
call('ZREM', taken, '')
answer = call('ZADD', taken, ends, token)
end
answer = type(answer) == 'table' and answer or 1
end
if type(answer) == 'table' then
answer = string.find(answer.err, 'WRONGTYPE', 1, true) and 0 or #KEYS == 1 and answer or -1
end
answers[index] = answer
end
return type(answers[1]) == 'table' and answers[1] or answers
