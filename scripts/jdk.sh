# Sourced, not run: leaves JAVA_HOME pointing at a JDK 17 or newer, or stops with what to do.
# (POSIX sh; no `exit`, since the caller's shell is ours.)

_java_major() { # prints the major version of the java at $1, or nothing
  "$1" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n 1
}

_find_java() { # prints the path of a java 17+, or nothing
  for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java)" /usr/lib/jvm/*/bin/java; do
    [ -x "$candidate" ] || continue
    major=$(_java_major "$candidate")
    [ -n "$major" ] && [ "$major" -ge 17 ] && { readlink -f "$candidate"; return; }
  done
}

_java=$(_find_java)
if [ -z "$_java" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "No JDK 17+ found: installing Debian's."
  apt-get update -qq && for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 && break
  done
  _java=$(_find_java)
fi
if [ -n "$_java" ]; then
  JAVA_HOME=$(dirname "$(dirname "$_java")")
  export JAVA_HOME
else
  echo "Spark needs a JDK 17 or newer, and none was found."
  echo "Install one (Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17)"
  echo "or set JAVA_HOME to the folder of one, then run the same command again."
  false
fi
