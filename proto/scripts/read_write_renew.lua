-- Extends each read or write lock that is ours. Never creates one, never shortens; see read_acquire.lua. One that fails does
-- not keep the others from theirs.
-- KEYS locks, ARGV a token and a lease in milliseconds for each. Returns for each 1 if its lease runs at least so long, 0 if
-- it is not ours, -1 if the server refused; asked of one key alone, the server's own words are the reply.
local answers, call = {}, redis.pcall
for index, lock in ipairs(KEYS) do
local token, lease = ARGV[2 * index - 1], ARGV[2 * index]
local reads = call('HEXISTS', lock, token)
local answer = reads == 0 and call('HEXISTS', lock, token .. ':write') or reads
if answer == 1 then
answer = call('PTTL', lock)
if type(answer) == 'number' then
local longest = tonumber(lease)
if answer == -1 then
longest = reads == 1 and call('HGET', lock, 'mode') == 'write' and 86400000 or math.max(longest, 30000)
end
answer = answer < longest and call('PEXPIRE', lock, longest) or 1
end
end
if answer == 1 and reads == 1 then
local own = (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':' .. token .. ':rwlock_timeout:1'
local set = call('PTTL', own)
if set == -2 then
set = call('SET', own, '1', 'PX', lease)
elseif type(set) == 'number' and set < tonumber(lease) then
set = call('PEXPIRE', own, lease)
end
answer = type(set) == 'table' and set.err and set or 1
end
if type(answer) == 'table' then
answer = string.find(answer.err, 'WRONGTYPE', 1, true) and 0 or #KEYS == 1 and answer or -1
end
answers[index] = answer
end
return type(answers[1]) == 'table' and answers[1] or answers
