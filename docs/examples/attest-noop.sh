#!/bin/sh
# The smallest plugin of attest-plugin/1: it asks to be told of every step and objects to none.
# It shows the transport: one line in, one line out. Needs jq.
#
#   name = "noop", hooks = ["step.pre"], deterministic = true

ask() { printf '%s\n' "$message" | jq -r "$1"; }

say() { printf '{"v":1,"id":%s,%s}\n' "$id" "$1"; }

while IFS= read -r message; do
  kind=$(ask .kind) && id=$(ask .id) || exit 1
  case $kind in
    hello)
      say '"kind":"hello_ok","name":"noop","version":"0.1.0","protocol":1,"hooks":["step.pre"],"deterministic":true'
      ;;
    shutdown)
      exit 0
      ;;
    *)
      say '"kind":"verdict","decision":"allow","findings":[]'
      ;;
  esac
done

# The core went away without a word.
exit 1
