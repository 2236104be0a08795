#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of the Java 17 to use: JAVA_HOME's where that is set, else the one on the PATH.
# Otherwise says in one line, on stderr, what is wrong and what to install, and exits with 1.
hint="install one (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: brew install openjdk@17; others: adoptium.net), then try again"

fail() {
  echo "spark-dstl needs Java 17: $1; $hint" >&2
  exit 1
}

if [ -n "$JAVA_HOME" ]; then
  java="$JAVA_HOME/bin/java"
  [ -x "$java" ] || fail "JAVA_HOME is $JAVA_HOME, which has no bin/java"
else
  java=$(command -v java) || fail "there is no java on the PATH"
fi

# The line looks like: openjdk version "17.0.15" 2025-04-15. Others may come before it (JAVA_TOOL_OPTIONS is echoed).
version=$("$java" -version 2>&1 | while IFS= read -r line; do
  case $line in
    *' version "'*) line=${line#*\"}; echo "${line%%\"*}"; break ;;
  esac
done)

case $version in
  17 | 17.* | 17-* | 17+*) echo "$java" ;;
  "") fail "$java does not run" ;;
  *) fail "$java is version $version" ;;
esac
