-- Extends each lock that is ours. Never shortens. One key that fails does not keep the others from theirs.
-- KEYS locks, ARGV a token and a lease in milliseconds for each. Returns for each 1 if its lease runs at least so long,
-- 0 if it is not ours, -1 if the server refused.
local answers = {}
for index, key in ipairs(KEYS) do
local token, lease = ARGV[2 * index - 1], ARGV[2 * index]
local value = redis.pcall('GET', key)
if type(value) == 'table' then
answers[index] = string.find(value.err, 'WRONGTYPE', 1, true) and 0 or -1
elseif value ~= token then
answers[index] = 0
else
local left = redis.pcall('PTTL', key)
if type(left) == 'number' and left < tonumber(lease) then
left = redis.pcall('PEXPIRE', key, lease)
elseif type(left) == 'number' then
left = 1
end
answers[index] = type(left) == 'table' and -1 or left
end
end
return answers
