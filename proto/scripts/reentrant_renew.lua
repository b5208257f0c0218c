-- Extends each hash lock that is ours. Never shortens. One key that fails does not keep the others from theirs.
-- KEYS locks, ARGV an owner field and a lease in milliseconds for each. Returns for each 1 if its lease runs at least so
-- long, 0 if it is not ours, -1 if the server refused; asked of one key alone, the server's own words are the reply.
local answers = {}
for index, key in ipairs(KEYS) do
local owner, lease = ARGV[2 * index - 1], ARGV[2 * index]
local held = redis.pcall('HEXISTS', key, owner)
if type(held) == 'table' then
answers[index] = string.find(held.err, 'WRONGTYPE', 1, true) and 0 or #KEYS == 1 and held or -1
elseif held == 0 then
answers[index] = 0
else
local left = redis.pcall('PTTL', key)
if type(left) == 'number' and left < tonumber(lease) then
left = redis.pcall('PEXPIRE', key, lease)
elseif type(left) == 'number' then
left = 1
end
answers[index] = type(left) ~= 'table' and left or #KEYS == 1 and left or -1
end
end
return type(answers[1]) == 'table' and answers[1] or answers
