#!/bin/sh
# attest-noop — allows everything, announces one hook.
while IFS= read -r line; do
  kind=$(printf '%s' "$line" | jq -r .kind)
  id=$(printf '%s' "$line" | jq -r .id)
  case "$kind" in
    hello)
      printf '{"v":1,"id":%s,"kind":"hello_ok","name":"noop","version":"0.1.0",' "$id"
      printf '"protocol":1,"hooks":["step.pre"],"deterministic":true}\n'
      ;;
    shutdown) exit 0 ;;
    *) printf '{"v":1,"id":%s,"kind":"verdict","decision":"allow","findings":[]}\n' "$id" ;;
  esac
done
