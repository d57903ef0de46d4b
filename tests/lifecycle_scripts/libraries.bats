#!/usr/bin/env bats
# The libraries that steps stand on.
# shellcheck disable=SC2016 # what `library` is given is expanded on the node

load helpers

sum() { sha256sum "$1" | cut -d ' ' -f 1; }

scenario() {
  head -c 5000 /dev/urandom >"$FAKE/remote"
}

# fetch URL [DIGEST]
fetch() {
  library fetch "fetch::file '$1' '$SANDBOX/got/file' 'sha256:${2:-$(sum "$FAKE/remote")}'"
}

@test "fetch: the three kinds of sources" {
  local url
  for url in "file://$FAKE/remote" s3://bucket/key https://example.org/file; do
    run fetch "$url"
    assert::status 0
    cmp "$FAKE/remote" "$SANDBOX/got/file"
    rm "$SANDBOX/got/file"
  done
}

@test "fetch: SHA-512 as well" {
  run library fetch "fetch::file 'file://$FAKE/remote' '$SANDBOX/got/file' 'sha512:$(sha512sum "$FAKE/remote" | cut -d ' ' -f 1)'"
  assert::status 0
}

@test "fetch: what is here already is not fetched again" {
  fetch https://example.org/file
  forget_calls
  run fetch https://example.org/file
  assert::status 0
  assert::never_called curl
}

@test "fetch: a mismatch is refused and leaves nothing" {
  run fetch https://example.org/file "$(sum "$FAKE/disks")"
  assert::status 1
  assert::contains "$output" "refused https://example.org/file: its checksum is not sha256:"
  assert::equal '' "$(ls -A "$SANDBOX/got")"
}

@test "fetch: a mismatch leaves an older file as it is" {
  mkdir -p "$SANDBOX/got"
  echo older >"$SANDBOX/got/file"
  run fetch https://example.org/file "$(sum "$FAKE/disks")"
  assert::status 1
  assert::equal older "$(cat "$SANDBOX/got/file")"
}

@test "fetch: a truncated transfer is resumed" {
  echo 1000 >"$FAKE/truncate"
  PATIENCE=600 run fetch https://example.org/file
  assert::status 0
  cmp "$FAKE/remote" "$SANDBOX/got/file"
  assert::equal 2 "$(grep -c '^curl' "$FAKE/calls")"
}

@test "fetch: a transfer that was cut without an error is repeated" {
  echo 1000 >"$FAKE/truncate"
  touch "$FAKE/silently"
  PATIENCE=600 run fetch https://example.org/file
  assert::status 0
  cmp "$FAKE/remote" "$SANDBOX/got/file"
}

@test "fetch: what a killed run left of another file does no harm" {
  mkdir -p "$SANDBOX/got"
  head -c 1000 /dev/urandom >"$SANDBOX/got/.file.part"
  run fetch https://example.org/file
  assert::status 0
  cmp "$FAKE/remote" "$SANDBOX/got/file"
}

@test "fetch: an answer that will not change is not asked for again, a busy server is" {
  printf 404 >"$FAKE/code"
  run fetch https://example.org/file
  assert::status 1
  assert::equal 1 "$(grep -c '^curl' "$FAKE/calls")"
  printf 503 >"$FAKE/code"
  (until_true eval '(($(grep -c "^curl" "$FAKE/calls") > 3))' && rm "$FAKE/code") 3>&- &
  PATIENCE=600 run fetch https://example.org/file
  assert::status 0
}

@test "fetch: a right that comes late is waited for, on S3 and on GitHub" {
  printf 403 >"$FAKE/code"
  (sleep 0.3 && rm "$FAKE/code") 3>&- &
  run library fetch "ULTRACLUSTER_FETCH_DEADLINE=600; fetch::file https://example.org/file '$SANDBOX/got/file' 'sha256:$(sum "$FAKE/remote")'"
  assert::status 0
  printf '#!/bin/bash\necho "aws $*" >>"$FAKE/calls"\n[[ ! -e $FAKE/denied ]] || { echo "fatal error: An error occurred (403) when calling the HeadObject operation: Forbidden" >&2; exit 1; }\ncat "$FAKE/remote" >"${*: -1}"\n' >"$SANDBOX/denies"
  chmod +x "$SANDBOX/denies"
  ln -sf "$SANDBOX/denies" "$SANDBOX/bin/aws"
  touch "$FAKE/denied"
  (sleep 0.3 && rm "$FAKE/denied") 3>&- &
  run library fetch "ULTRACLUSTER_FETCH_DEADLINE=600; fetch::file s3://bucket/key '$SANDBOX/got/other' 'sha256:$(sum "$FAKE/remote")'"
  assert::status 0
  # but not for ever
  touch "$FAKE/denied"
  forget_calls
  run library fetch "ULTRACLUSTER_DENIED_DEADLINE=0 ULTRACLUSTER_FETCH_DEADLINE=20; fetch::file s3://bucket/key '$SANDBOX/got/third' 'sha256:$(sum "$FAKE/remote")'"
  assert::status 1
  assert::equal 1 "$(grep -c '^aws' "$FAKE/calls")"
  assert::contains "$output" "s3://bucket/key is not for this node: Forbidden"
}

@test "fetch: no address with credentials, whose host is another than it seems" {
  local url
  for url in 'http://127.0.0.1:@evil.example/x' 'https://user:word@makers.example/x' 's3://a@bucket/key'; do
    run library fetch "fetch::file '$url' '$SANDBOX/got/file' 'sha256:$(sum "$FAKE/remote")'"
    assert::status 1
    assert::contains "$output" "an address with credentials"
  done
  [[ ! -e $SANDBOX/got/file ]]
  forget_calls
}

@test "fetch: an image without the program is told at once" {
  rm "$SANDBOX/bin/aws"
  run library fetch "ULTRACLUSTER_FETCH_DEADLINE=20; fetch::file s3://bucket/key '$SANDBOX/got/file' 'sha256:$(sum "$FAKE/remote")'"
  assert::status 1
  assert::contains "$output" "cannot fetch s3://bucket/key: this image has no command aws"
  assert::equal 0 "$(grep -c 'again in' <<<"$output")"
}

@test "fetch: the first attempt of a run waits a moment, and only for what is elsewhere" {
  run library fetch "ULTRACLUSTER_SPREAD=1; RANDOM=7
    fetch::file https://example.org/file '$SANDBOX/got/file' 'sha256:$(sum "$FAKE/remote")'
    fetch::file https://example.org/file '$SANDBOX/got/other' 'sha256:$(sum "$FAKE/remote")'"
  assert::status 0
  assert::equal 1 "$(grep -c 'so that not all nodes ask at once' <<<"$output")"
  run library fetch "ULTRACLUSTER_SPREAD=1; fetch::file 'file://$FAKE/remote' '$SANDBOX/got/third' 'sha256:$(sum "$FAKE/remote")'"
  assert::equal 0 "$(grep -c 'so that not all nodes ask at once' <<<"$output")"
  # Another step of the same run has been spread by that.
  run library fetch "ULTRACLUSTER_SPREAD=1; fetch::file https://example.org/file '$SANDBOX/got/fourth' 'sha256:$(sum "$FAKE/remote")'"
  assert::equal 0 "$(grep -c 'so that not all nodes ask at once' <<<"$output")"
  # What is here already is not asked for.
  rm "$ULTRACLUSTER_ROOT/run/ultracluster/spread"
  run library fetch "ULTRACLUSTER_SPREAD=1; fetch::file https://example.org/file '$SANDBOX/got/file' 'sha256:$(sum "$FAKE/remote")'"
  assert::equal 0 "$(grep -c 'so that not all nodes ask at once' <<<"$output")"
}

@test "fetch: first attempts are spread over all of the seconds, as many as the nodes ask for" {
  spread() { library fetch "unset ULTRACLUSTER_SPREAD; sleep() { :; }; $1; RANDOM=7; for number in {1..40}; do fetch::spread; rm \"\$FETCH_SPREAD\"; done" 2>&1 | sed -n 's/.*waiting \([0-9]*\)\..*/\1/p' | sort -n | tail -n 1; }
  # RANDOM alone ends at 32 s.
  assert::contains "54 55 56 57 58 59" "$(spread CLUSTER_NODES=1024)"
  assert::contains "0 1" "$(spread CLUSTER_NODES=16)"
}

@test "fetch: a key that is here is fetched again when it has expired" {
  # A key is a line "FINGERPRINT EXPIRES".
  printf '#!/bin/bash\nread -r print expires <"${*: -1}"\nprintf "pub:-:4096:1:0:1:%%s::-:\\nfpr:::::::::%%s:\\n" "$expires" "$print"\n' >"$SANDBOX/bin/gpg"
  chmod +x "$SANDBOX/bin/gpg"
  mkdir -p "$SANDBOX/got"
  echo "ABCD 4000000000" >"$FAKE/remote"
  echo "ABCD 1000000000" >"$SANDBOX/got/key"
  run library fetch "fetch::key https://example.org/key '$SANDBOX/got/key' ABCD"
  assert::status 0
  cmp "$FAKE/remote" "$SANDBOX/got/key"
  forget_calls
  run library fetch "fetch::key https://example.org/key '$SANDBOX/got/key' ABCD"
  assert::never_called curl
  # Without an answer the old one stays.
  echo "ABCD 1000000000" >"$SANDBOX/got/key"
  touch "$FAKE/web_down"
  run library fetch "fetch::key https://example.org/key '$SANDBOX/got/key' ABCD"
  assert::status 0
  assert::equal "ABCD 1000000000" "$(cat "$SANDBOX/got/key")"
}

@test "files: half of a file never gets its name, wherever the error happens" {
  mkdir -p "$ULTRACLUSTER_ROOT/etc"
  echo old >"$ULTRACLUSTER_ROOT/etc/file"
  # in a condition bash does not stop at the first error
  run library files 'trap "" XFSZ; ulimit -f 1; printf "%4000s" text | files::write /etc/file && echo "it went well" || echo "it failed"'
  assert::contains "$output" "it failed"
  assert::equal old "$(cat "$ULTRACLUSTER_ROOT/etc/file")"
  [[ ! -e $ULTRACLUSTER_ROOT/etc/.file.ultracluster-new ]]
  printf '#!/bin/bash\nhead -c 2 "${*: -2:1}" >"${*: -1}"\necho "install: No space left on device" >&2\nexit 1\n' >"$SANDBOX/bin/install"
  chmod +x "$SANDBOX/bin/install"
  run library files 'files::install /etc/os-release /etc/file && echo "it went well" || echo "it failed"'
  assert::contains "$output" "it failed"
  assert::equal old "$(cat "$ULTRACLUSTER_ROOT/etc/file")"
  [[ ! -e $ULTRACLUSTER_ROOT/etc/.file.ultracluster-new ]]
}

@test "files: a file has a text where that is all of it" {
  mkdir -p "$ULTRACLUSTER_ROOT/etc"
  printf 'a\nb\n' >"$ULTRACLUSTER_ROOT/etc/file"
  run library files 'files::has /etc/file $'"'a\\nb'"' && echo same; files::has /etc/file a || echo other; files::has /etc/none a || echo none; files::has /etc a || echo folder'
  assert::equal $'same\nother\nnone\nfolder' "$output"
}

@test "files: those of one folder go together, those that are right stay, and none is half there" {
  local -r opt=$ULTRACLUSTER_ROOT/opt
  rows='lib/log.sh /opt/a/log.sh 0755\nlib/json.sh /opt/a/json.sh 0755\nlib/lock.sh /opt/a/other 0755\nlib/log.sh /opt/b/log.sh\n'
  install_all() { run library files "printf '$rows' | files::install_missing"; }
  mkdir -p "$opt/a/.ultracluster-new"
  echo "of a run that was killed" >"$opt/a/.ultracluster-new/old"
  install_all
  assert::status 0
  assert::equal "644 b/log.sh,755 a/json.sh,755 a/log.sh,755 a/other," "$(cd "$opt" && find a b -type f -printf '%m %p\n' | sort | tr '\n' ,)"
  cmp "$SCRIPTS/lib/lock.sh" "$opt/a/other"
  cmp "$SCRIPTS/lib/json.sh" "$opt/a/json.sh"
  assert::equal 3 "$(grep -c '^mv' "$FAKE/changes")"
  forget_calls
  install_all
  assert::never_called mv
  echo old >"$opt/a/json.sh"
  chmod -x "$opt/a/log.sh"
  printf '#!/bin/bash\nhead -c 2 "${*: -2:1}" >"${*: -1}/json.sh"\nexit 1\n' >"$SANDBOX/bin/install"
  chmod +x "$SANDBOX/bin/install"
  install_all
  assert::status 1
  assert::equal old "$(cat "$opt/a/json.sh")"
  [[ ! -e $opt/a/.ultracluster-new ]]
  rm "$SANDBOX/bin/install"
  install_all
  cmp "$SCRIPTS/lib/json.sh" "$opt/a/json.sh"
  [[ -x $opt/a/log.sh ]]
}

@test "clock: nobody sets it" {
  run library clock 'unset EPOCHREALTIME EPOCHSECONDS; EPOCHREALTIME=1.5; read -r up _ </proc/uptime; clock::now now; echo "$((now / 1000 - ${up%.*}))"'
  assert::contains "0 1" "$output"
}

@test "fetch: no plain HTTP, no weak or malformed checksum" {
  run fetch http://example.org/file
  assert::status 1
  run fetch https://example.org/file 0123
  assert::status 1
  run library fetch "fetch::file 'file://$FAKE/remote' '$SANDBOX/got/file' md5:0123"
  assert::status 1
  assert::never_called curl
}

@test "retry: pauses grow, and the deadline holds" {
  run library retry 'retry::run 0.4 false'
  assert::status 1
  local -r attempts=$(grep -c 'ended with status 1' <<<"$output")
  assert::equal yes "$( ((attempts >= 4 && attempts <= 15)) && echo yes)"
}

@test "retry: success ends it, and so does giving up" {
  run library retry 'n=0; try() { n=$((n + 1)); ((n == 3)); }; retry::run 5 try; echo "$n attempts"'
  assert::contains "$output" "3 attempts"
  run library retry 'n=0; try() { n=$((n + 1)); return 78; }; retry::run 5 try || echo "$n attempts, status $?"'
  assert::contains "$output" "1 attempts, status 78"
}

@test "packages: the lock is waited for" {
  holds_lock packages
  (until_true grep -qs "waiting up to 600 s for the lock 'packages'" "$LOG" && lets_go) 3>&- &
  PATIENCE=600 run library packages 'packages::install xfsprogs'
  assert::status 0
  assert::called "apt-get -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold --yes --no-install-recommends --allow-change-held-packages install xfsprogs"
  wait
}

@test "packages: a lock that is never released is an error, and nothing is installed" {
  holds_lock packages
  run library packages 'packages::install xfsprogs'
  lets_go
  assert::status 1
  assert::contains "$output" "another process holds the package-manager lock"
  assert::never_called apt-get
}

@test "packages: the lock of apt's lists is waited for, a repository without an index is not" {
  printf '#!/bin/bash\necho "apt-get $*" >>"$FAKE/calls"\n[[ -e $FAKE/said ]] || exit 0\ncat "$FAKE/said" >&2\n(($(grep -c ^apt-get "$FAKE/calls") < 3)) || rm "$FAKE/said"\nexit 100\n' >"$SANDBOX/lists"
  chmod +x "$SANDBOX/lists"
  ln -sf "$SANDBOX/lists" "$SANDBOX/bin/apt-get"
  echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 815 (apt-get)' >"$FAKE/said"
  PATIENCE=600 run library packages packages::refresh
  assert::status 0
  assert::equal 4 "$(grep -c '^apt-get.* update' "$FAKE/calls")"
  forget_calls
  echo 'E: Failed to fetch https://example.org/Packages  404  Not Found [IP: 192.0.2.1 443]' >"$FAKE/said"
  PATIENCE=600 run library packages packages::refresh
  assert::status 78
  assert::equal 1 "$(grep -c '^apt-get.* update' "$FAKE/calls")"
}

@test "packages: two at once run one after the other, and the lock ends with them" {
  library packages 'packages::apt install a' &
  library packages 'packages::apt install b' &
  wait
  run library packages 'packages::apt install c; packages::apt install d'
  assert::status 0
  assert::equal 4 "$(grep -c '^apt-get' "$FAKE/calls")"
}

@test "packages: dnf where there is no apt" {
  mv "$SANDBOX/bin/apt-get" "$SANDBOX/bin/dnf"
  run library packages 'packages::install xfsprogs'
  assert::status 0
  assert::called "dnf --assumeyes --setopt=install_weak_deps=False install xfsprogs"
}

@test "log: every line is on stderr and in the file, failures come last and on one line" {
  run --separate-stderr library log 'LOG_STEP=x log::info "hello"; log::failed x "$(printf "two\nlines")"'
  assert::equal '' "$output"
  assert::equal "$stderr" "$(cat "$LOG")"
  assert::contains "$stderr" " INFO  x: hello"
  assert::last_log_line "FAILED x: two lines"
}

@test "log: the console has warnings, what is for it, the last lines, and what led to a failure" {
  run --separate-stderr on_node ULTRACLUSTER_CONSOLE= bash -c "source '$SCRIPTS/lib/log.sh'; log::info hello; log::warn careful
    printf 'a program\n2026-11-27T00:00:00Z WARN  x: mind\n' | log::copy; log::announce look; log::ready 'in 3 s'"
  assert::equal 'careful|x: mind|look|all lines of this run: '"$ULTRACLUSTER_ROOT"'/var/log/ultracluster/run.log|READY in 3 s' \
    "$(sed 's/^2026[^ ]* [A-Z]* *//' "$LOG" | paste -sd '|')"
  assert::equal "$(cat "$LOG")" "$stderr"
  assert::equal 7 "$(wc -l <"$ULTRACLUSTER_ROOT/var/log/ultracluster/run.log")"
  run on_node ULTRACLUSTER_CONSOLE= bash -c "source '$SCRIPTS/lib/log.sh'; log::info hello; log::failed x cause"
  assert::contains "$output" '  | a program'
  assert::contains "$output" 'INFO  hello'
  assert::last_log_line 'FAILED x: cause'
}

@test "log: without a place for the file there is stderr" {
  run library log 'ULTRACLUSTER_LOG=/proc/nowhere/x.log log::info hello'
  assert::status 0
  assert::contains "$output" hello
}

@test "json: any text is written as Python writes it" {
  local locale
  for locale in C C.UTF-8; do
    run "$PYTHON" -IS - "$SCRIPTS/lib/json.sh" "$locale" <<'PYTHON'
import json, random, subprocess, sys

library, locale = sys.argv[1:]
seed = random.SystemRandom().randrange(10**6)
dice = random.Random(seed)
texts = [b"", b"plain", b'say "C:\\"', b"a\nb\tc\r\b\f\x0b\x7f\x1f\x01", b"&\\&", b"%s %d", b"'$x`", b"-n", b"\\u0041", b" two  spaces "]
texts += ["é—😀\ud7ff\ue000\uffff\U0010ffff".encode(), b"\xff\xfe", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc3", b"\xe2\x82a", b"\xf4\x90\x80\x80", b"\xc0\xaf"]
texts += [bytes([byte]) for byte in range(1, 256)] + [b"x%cy" % byte for byte in range(1, 256)]
sets = range(1, 256), b'\\"\n aZ', (0xC2, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF)
texts += [bytes(dice.choice(dice.choice(sets)) for _ in range(dice.randrange(1, 12))) for _ in range(1000)]
code = 'source "$0"; while LC_ALL=C IFS= read -r -d "" text; do json::text out "$text"; printf "%s\\n" "$out"; done'
done = subprocess.run(
    ["bash", "-euo", "pipefail", "-c", code, library], input=b"".join(text + b"\0" for text in texts),
    stdout=subprocess.PIPE, check=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": locale},
)
found = done.stdout.decode("ascii").splitlines()
assert len(found) == len(texts), (seed, len(found))
for text, line in zip(texts, found):
    assert line == json.dumps(text.decode(errors="replace")), (seed, text, line)
PYTHON
    assert::status 0
  done
}

@test "libraries can be sourced twice" {
  local file
  for file in "$SCRIPTS"/lib/*.sh; do
    [[ $file != */run_verb.sh && $file != */run_check.sh ]] || continue # programs
    file=${file##*/}
    run library "${file%.sh}" "source '$SCRIPTS/lib/$file'"
    assert::status 0
  done
}

@test "version: as vendors write them" {
  local a b order
  while read -r a b order; do
    assert::equal "$a $b $order" "$a $b $(library version "version::compare '$a' '$b'; echo \$VERSION_ORDER")"
  done <<'CASES'
2.6.0amzn1.0 2.6.0amzn2.0 older
2.7.0amzn2.0 2.6.0amzn9.0 newer
2.6.0 2.6.0amzn1.0 older
595.91.07 595.112.07 older
13.3 13.3.0 same
2.30.7-1+cuda13.0 2.30.7-1 same
1:4.7.0-1 4.7.0 same
6.8.0-1039-aws 6.8.0-1017 newer
1.20.1-2 1.20.1-1 newer
CASES
}
