# SPDX-License-Identifier: MIT
#
# Adds up sizes per module. A line of its input is a module, and what `size` says of one object: text, data, bss.
{ text[$1] += $2; data[$1] += $3; bss[$1] += $4; total += $2 + $3 }
END {
  printf "  %-8s %8s %8s %8s %12s\n", "module", "text", "data", "bss", "text + data"
  modules = split("proto core kinds posix", order, " ")
  for (j = 1; j <= modules; ++j)
    if (order[j] in text) {
      m = order[j]
      printf "  %-8s %8d %8d %8d %12d\n", m, text[m], data[m], bss[m], text[m] + data[m]
    }
  printf "  %-8s %39d\n", "all", total
}
