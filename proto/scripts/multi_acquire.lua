-- Takes all names if all are free, none otherwise. Re-entry is multi_step.lua: an owner field is never used for two holds.
-- KEYS the names, ARGV[1] owner field, ARGV[2] lease in milliseconds. Returns OK; or, of the name in the way that stays for
-- longest, its remaining time in milliseconds (-1: it has no TTL, and stays for ever) and its place among KEYS.
local longest, place = -2, 0
for index, key in ipairs(KEYS) do
local left = redis.call('PTTL', key)
if left ~= -2 and longest ~= -1 and (left == -1 or left > longest) then
longest, place = left, index
end
end
if place > 0 then
return {longest, place}
end
-- Where PEXPIRE is refused, nothing has been created yet that would stay for ever.
for _, key in ipairs(KEYS) do
redis.call('PEXPIRE', key, ARGV[2])
end
for _, key in ipairs(KEYS) do
redis.call('HSET', key, ARGV[1], '1')
redis.call('PEXPIRE', key, ARGV[2])
end
return {ok = 'OK'}
