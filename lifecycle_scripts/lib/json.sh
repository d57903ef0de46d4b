# shellcheck shell=bash
# Text as JSON has it, without a process: a Python for every line of a report took longer than most looks at a node.
[[ -z ${ULTRACLUSTER_LIB_JSON:-} ]] || return 0
ULTRACLUSTER_LIB_JSON=1

# json::text VARIABLE TEXT: in quotes, as Python's json writes it: ASCII only. Bytes that are no UTF-8 become U+FFFD.
json::text() {
  local LC_ALL=C # a byte is a character
  local json_text=$2
  if [[ $json_text == *[![:print:]]* ]]; then
    json::escaped json_text
  else
    json_text=${json_text//\\/\\\\}
    json_text=${json_text//\"/\\\"}
  fi
  printf -v "$1" '"%s"' "$json_text"
}

# json::escaped VARIABLE: byte by byte, what is in it
json::escaped() {
  local -r bytes=${!1}
  local at=0 byte code count least most lead out=''
  while ((at < ${#bytes})); do
    byte=${bytes:at:1}
    at=$((at + 1))
    case $byte in
      '"' | \\) out+="\\$byte" && continue ;;
      $'\n') out+='\n' && continue ;;
      $'\r') out+='\r' && continue ;;
      $'\t') out+='\t' && continue ;;
      $'\b') out+='\b' && continue ;;
      $'\f') out+='\f' && continue ;;
      [[:print:]]) out+=$byte && continue ;;
    esac
    json::code "$byte"
    # How many bytes follow the first one, and what the next of them may be (Unicode, table 3-7)
    count=0 least=128 most=191 lead=$code
    case $code in
      19[4-9] | 20? | 21? | 22[0-3]) count=1 lead=$((code & 31)) ;;
      22[4-9] | 23?)
        count=2 lead=$((code & 15))
        ((code != 224)) || least=160
        ((code != 237)) || most=159
        ;;
      24[0-4])
        count=3 lead=$((code & 7))
        ((code != 240)) || least=144
        ((code != 244)) || most=143
        ;;
      *) ((code < 128)) || lead=65533 ;;
    esac
    while ((count > 0)); do
      code=0
      ((at == ${#bytes})) || json::code "${bytes:at:1}"
      ((least <= code && code <= most)) || { lead=65533 && break; }
      lead=$((lead << 6 | code & 63)) least=128 most=191
      count=$((count - 1)) at=$((at + 1))
    done
    if ((lead > 65535)); then
      printf -v byte '\\u%04x\\u%04x' "$((55296 + (lead - 65536 >> 10)))" "$((56320 + (lead - 65536 & 1023)))"
    else
      printf -v byte '\\u%04x' "$lead"
    fi
    out+=$byte
  done
  printf -v "$1" '%s' "$out"
}

# json::code BYTE: sets `code` of the caller to its number. The C library may tell another one for those above 127.
json::code() {
  printf -v code '%d' "'$1"
  code=$((code & 255))
}

# json::member VARIABLE KEY TEXT: appends "KEY": "TEXT" to the members in VARIABLE; KEY is plain.
json::member() {
  local json_value
  json::text json_value "$3"
  printf -v "$1" '%s' "${!1}${!1:+, }\"$2\": $json_value"
}
