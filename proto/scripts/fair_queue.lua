-- Who waits for a fair lock? KEYS[1] lock. Returns how many, and of the first eight of them a line each: for how many
-- milliseconds it has waited, when it was last heard of (-1: not within 3 s), and its owner field, or the beginning of it.
local lock = KEYS[1]
local tag = lock:find('{', 1, true) and lock or '{' .. lock .. '}'
local queue, time, text = 'holdfast_queue:' .. tag, redis.call('TIME'), ''
local first = redis.call('ZRANGE', queue, 0, 7, 'WITHSCORES')
for index = 1, #first, 2 do
local left = redis.call('PTTL', 'holdfast_beat:' .. tag .. ':' .. first[index])
local waited = math.max(0, (time[1] * 1e6 + time[2] - first[index + 1]) / 1000)
text = text .. string.format('%.0f %d ', waited, left < 0 and -1 or math.max(0, 3000 - left))
text = text .. string.gsub(string.sub(first[index], 1, 64), '\n', '?') .. '\n'
end
return {redis.call('ZCARD', queue), text}
