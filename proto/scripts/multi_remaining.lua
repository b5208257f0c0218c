-- KEYS the names. Returns the largest of their remaining times in milliseconds, as PTTL says it: -2 where all are free, -1 where
-- one has no TTL.
local longest = -2
for _, key in ipairs(KEYS) do
local left = redis.call('PTTL', key)
if longest ~= -1 and (left == -1 or left > longest) then
longest = left
end
end
return longest
