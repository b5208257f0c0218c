-- Extends each hold whose names are all ours; one that has lost a name is lost, and nothing of it is extended. Never creates,
-- never shortens. One hold that fails does not keep the others from theirs.
-- KEYS the names of all holds, ARGV an owner field, a lease in milliseconds and the number of its names for each hold. Returns
-- for each 1 if its leases run at least so long, 0 if a name is not ours, -1 if the server refused; asked of one hold alone,
-- the server's own words are the reply. One ARGV more means nothing.
local answers, last = {}, 0
for hold = 1, #ARGV / 3 do
local owner, lease = ARGV[3 * hold - 2], ARGV[3 * hold - 1]
local first = last + 1
last = last + ARGV[3 * hold]
local answer = 1
for index = first, last do
local held = redis.pcall('HEXISTS', KEYS[index], owner)
if held == 0 or type(held) == 'table' and string.find(held.err, 'WRONGTYPE', 1, true) then
answer = 0
elseif type(held) == 'table' and answer == 1 then
answer = held
end
end
for index = first, last do
local left = answer == 1 and redis.pcall('PTTL', KEYS[index])
if type(left) == 'number' and left < tonumber(lease) then
left = redis.pcall('PEXPIRE', KEYS[index], lease)
if left == 0 then
answer = 0
end
end
if type(left) == 'table' then
answer = left
end
end
answers[hold] = type(answer) ~= 'table' and answer or #ARGV < 6 and answer or -1
end
return type(answers[1]) == 'table' and answers[1] or answers
