# SPDX-License-Identifier: Apache-2.0
"""A Java process with Spark's classes and without a Spark application.

It listens on a loopback port, requires a token, and ends with this process: it exits when its standard input, a pipe
from this process, is closed.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from spark_dstl.dependencies import SPARK, needed
from spark_dstl.errors import JvmFailed, UnsupportedSpark
from spark_dstl.jar import jar_path
from spark_dstl.release import INSTALL, LINES, SparkLine, spark_in

PURPOSE = "Reading state"
_TOOLS = "org.apache.spark.sql.execution.streaming.state.dstl.tools"
_SECONDS_TO_END = 5.0
_TAIL = 2000
# The packages that Arrow and Spark's rows need, of those that Spark opens for its own processes.
_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.nio", "java.util", "sun.nio.ch", "sun.util.calendar",
)  # fmt: skip
# A process that follows a query runs for long, and nothing rotates its standard error.
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""
# What Java and Hadoop's clients take from the environment, among them credentials.
_INHERITED = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "JAVA_", "JDK_", "KRB5", "SPARK_", "YARN_")


@dataclass(frozen=True)
class JvmOptions:
    """Options of the Java process that reads state."""

    jars: tuple[str, ...] = ()
    """Paths of jars besides those of Spark and this package, such as those of `hadoop-aws`."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark, such as `spark.hadoop.fs.…`."""
    memory: str = "1g"
    """The limit of its heap, as Java writes it; RocksDB takes more memory outside of the heap."""


class Gateway:
    """The running process; `jar` is the path of this package's jar."""

    def __init__(self, options: JvmOptions) -> None:
        """Start the process, which takes one to three seconds. Raises `JvmFailed` if it does not start."""
        java = _java()
        for jar in options.jars:
            # Java ignores a missing one, and takes all of a directory for an asterisk.
            if not jar.endswith("*") and not Path(jar).exists():
                raise JvmFailed(f"there is no jar {jar}: --jars, or JvmOptions.jars, take paths on this machine")
        directory, line = spark_jars()
        self.jar = str(jar_path(line.version))
        # PySpark requires py4j.
        py4j = needed("py4j.java_gateway", PURPOSE, SPARK)
        self._directory = tempfile.mkdtemp(prefix="spark-dstl-")
        self._errors = Path(self._directory, "stderr")
        logging = Path(self._directory, "log4j2.properties")
        logging.write_text(_LOGGING)
        javaopts = [
            f"-Xmx{options.memory}",
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            # py4j takes the first line of the standard output for a port; Java writes warnings there.
            "-Xlog:all=off:stdout",
            "-Xlog:all=warning:stderr",
            f"-Djava.io.tmpdir={self._directory}",
            f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "-Djava.net.preferIPv4Stack=true",
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-XX:+IgnoreUnrecognizedVMOptions",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        ]
        try:
            with self._errors.open("wb") as errors, _names_of_files():
                port, token, process = py4j.launch_gateway(
                    classpath=os.pathsep.join([*options.jars, *_hadoop_settings(), str(directory / "*")]),
                    jarpath=self.jar,
                    javaopts=javaopts,
                    java_path=java,
                    die_on_exit=True,
                    enable_auth=True,
                    return_proc=True,
                    redirect_stderr=errors,
                    # Ctrl-C in a terminal is for Python, which ends pins before it ends this process.
                    create_new_process_group=True,
                )
            self._process: Popen[bytes] = process
            self._owner = os.getpid()
            self._gateway = py4j.JavaGateway(
                gateway_parameters=py4j.GatewayParameters(port=port, auth_token=token, auto_convert=True)
            )
        except BaseException as error:
            words = self.last_words()
            shutil.rmtree(self._directory, ignore_errors=True)
            if isinstance(error, OSError | ValueError | py4j.Py4JError):
                # A ValueError is py4j's, about the port that Java has not printed.
                why = words if words and isinstance(error, ValueError) else f"{error}. {words}"
                raise JvmFailed(f"{java} could not be started: {why}") from error
            raise

    def tool(self, name: str) -> Any:
        """Return a class of the process. Raises `JvmFailed` if its jar lacks the class."""
        found = getattr(self._gateway.jvm, f"{_TOOLS}.{name}")
        # py4j returns a package for the name of a missing class.
        if isinstance(found, needed("py4j.java_gateway", PURPOSE).JavaPackage):
            raise JvmFailed(f"{self.jar} lacks the class {name}: it is the jar of another release than this package's")
        return found

    def state_batch(self, number: int, offsets: Mapping[str, Any]) -> Any:
        """Return a batch for the process, given the second line of its `offsets/` entry."""
        return self.tool("StateBatch")(number, json.dumps(offsets))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the end of the standard error of the process, on one line."""
        try:
            with self._errors.open("rb") as errors:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL))
                content = errors.read()
        except OSError:
            return ""
        return " ".join(content.decode("utf-8", "replace").split())

    def leave_to_parent(self) -> None:
        """In a fork, send nothing to the process: the end of py4j's objects would release those of the parent."""
        client: Any = self._gateway._gateway_client
        client.is_connected = False
        for connection in client.deque:
            # Its callback shuts down the connection, which is also the parent's.
            connection.wr = None

    def close(self) -> None:
        """End the process, and delete its files on local disks; does nothing in a fork of its parent."""
        if os.getpid() != self._owner:
            return
        # Else py4j tells the process of the end of each of its objects, also later, and logs the failure.
        self._gateway._gateway_client.is_connected = False
        self._gateway.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)


@dataclass
class _Shared:
    """A process in use, and what it was started with."""

    gateway: Gateway
    options: JvmOptions
    environment: dict[str, str] = field(repr=False)
    users: int = 1


_shared: list[_Shared] = []
_lock = threading.Lock()


def acquire(options: JvmOptions) -> Gateway:
    """Return the process with these options, which all its users share; start it if none runs.

    It ends when each has released it, or with this process. Raises `JvmFailed` if it does not start.
    """
    environment = {name: value for name, value in os.environ.items() if name.startswith(_INHERITED)}
    with _lock:
        for one in _shared:
            if (one.options, one.environment) == (options, environment) and one.gateway.is_running:
                one.users += 1
                return one.gateway
        _shared.append(_Shared(Gateway(options), options, environment))
        return _shared[-1].gateway


def release(gateway: Gateway) -> None:
    """End a use of the process; the last one ends the process."""
    with _lock:
        (one,) = (one for one in _shared if one.gateway is gateway)
        one.users -= 1
        if not one.users:
            _shared.remove(one)
            gateway.close()


@atexit.register
def _end_all() -> None:
    for one in _shared:
        one.gateway.close()


def _leave_to_parent() -> None:
    for one in _shared:
        one.gateway.leave_to_parent()


# Windows has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def refuse_spark_without_readers() -> None:
    """Raise `UnsupportedSpark` if the installed Spark has no readers of state."""
    why = "has no readers of state, and its checkpoints lack what those of newer ones need"
    _refuse(lambda line: line.reads, why, ", to look into a checkpoint that has run a batch with it")


def refuse_spark_without_follower() -> None:
    """Raise `UnsupportedSpark` if the classes of the installed Spark cannot follow a query."""
    _refuse(lambda line: line.follows, "cannot decode one batch after another")


def _refuse(is_able: Callable[[SparkLine], bool], why: str, purpose: str = "") -> None:
    _, line = spark_jars()
    if not is_able(line):
        able = ", ".join(other.name for other in reversed(LINES) if is_able(other))
        raise UnsupportedSpark(f"Spark {line.name}, which is installed here, {why}: install one of {able}{purpose}")


@contextmanager
def _names_of_files() -> Iterator[None]:
    """Have a process that starts here name files as Python does: in UTF-8, also where the locale has ASCII alone."""
    locale = os.environ.get("LC_ALL")
    if sys.flags.utf8_mode:
        os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        if locale is not None:
            os.environ["LC_ALL"] = locale
        else:
            os.environ.pop("LC_ALL", None)


def _java() -> str:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise JvmFailed(
            f"{PURPOSE} takes Java, which does not start in a directory that was deleted: go to another one"
        ) from None
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise JvmFailed(f"{PURPOSE} takes Java 17, and there is no java in {where}: install it, or set JAVA_HOME")
    return found


def _hadoop_settings() -> list[str]:
    """Return the directories of `core-site.xml` and other settings of Hadoop, as Spark finds them."""
    return [os.environ[name] for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if os.environ.get(name)]


def spark_jars() -> tuple[Path, SparkLine]:
    """Return the directory of Spark's jars for the Java process, and the line of that Spark.

    Raises `UnsupportedSpark` without a Spark that this package has a jar for.
    """
    home = os.environ.get("SPARK_HOME")
    if home:
        directory = Path(home, "jars")
    else:
        package = find_spec("pyspark")
        if package is None or not package.submodule_search_locations:
            raise UnsupportedSpark(
                f"{PURPOSE}, and storage that pyarrow has no client for, takes Spark's classes, and PySpark is not "
                f"installed: {INSTALL}"
            )
        directory = Path(package.submodule_search_locations[0], "jars")
    line = spark_in(directory, f"is in {directory}; {INSTALL}")
    if line is None:
        raise UnsupportedSpark(f"{directory} has no jars of Spark: {INSTALL}")
    return directory, line


@contextmanager
def unconverted() -> Iterator[None]:
    """Raise exceptions of the process as py4j does, `Py4JJavaError`, also in a program with a Spark session.

    There PySpark converts the exceptions of every JVM: it asks that of the session which exception of Spark it is, and
    that JVM does not know those of other processes, or takes its own objects for them.
    """
    java_error = needed("py4j.protocol", PURPOSE).Py4JJavaError
    before = sys.exc_info()[1]
    try:
        yield
    except Exception as error:
        thrown: BaseException | None = error
        while thrown is not None and thrown is not before:
            if isinstance(thrown, java_error):
                raise thrown from None
            thrown = thrown.__context__
        raise
