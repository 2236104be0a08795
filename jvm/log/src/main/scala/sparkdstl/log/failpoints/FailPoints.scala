package sparkdstl.log.failpoints

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths}

/**
 * Named places where tests make a process stop or fail. Without the environment variable `SPARK_DSTL_FAIL_POINTS` a
 * place costs a null check.
 *
 * The variable's form is `name=action[@batch]`, several separated by `;`. Actions: `pause` blocks the thread until
 * there is a file `name.resume`, so that a test can do from outside what it wants, such as kill the process; `linger` is
 * a pause that swallows interrupts, like the code of a zombie: a task that goes on after it was killed; `fail` throws an
 * `IOException`. Each fires once over all processes: it first creates the file `name` in the directory
 * `SPARK_DSTL_FAIL_POINT_DIR`, with the process id as content, and does nothing if that file is there already.
 */
object FailPoints {
  private final case class Rule(name: String, action: String, batch: Option[Long])

  private val PollMillis = 20L
  private val Form = """([\w.-]+)=(pause|linger|fail)(?:@(\d+))?""".r

  private def directory: Path = Paths.get(sys.env.getOrElse("SPARK_DSTL_FAIL_POINT_DIR", "."))

  private val rules: Seq[Rule] = sys.env.get("SPARK_DSTL_FAIL_POINTS").toVector.flatMap(_.split(';')).map {
    case Form(name, action, batch) => Rule(name, action, Option(batch).map(_.toLong))
    case other => throw new IllegalArgumentException(s"not a fail point: $other")
  }

  /** Whether a test has asked for any. */
  def areSet: Boolean = rules.nonEmpty

  /** Stops or fails here if a test asked for it. */
  def hit(name: String, batch: => Long): Unit =
    if (rules.nonEmpty)
      rules.find(rule => rule.name == name && rule.batch.forall(_ == batch)).foreach { rule =>
        if (createMarker(name)) run(rule)
      }

  private def createMarker(name: String): Boolean =
    try {
      // Written aside and linked, so that whoever sees the marker also sees its content.
      val temporary = Files.createTempFile(directory, s".$name", ".tmp")
      Files.write(temporary, ProcessHandle.current().pid().toString.getBytes(UTF_8))
      try Files.createLink(directory.resolve(name), temporary)
      finally Files.delete(temporary)
      true
    } catch { case _: FileAlreadyExistsException => false }

  private def run(rule: Rule): Unit = rule.action match {
    case "fail" => throw new IOException(s"fail point ${rule.name}")
    case action =>
      while (!Files.exists(directory.resolve(s"${rule.name}.resume")))
        try Thread.sleep(PollMillis)
        catch { case _: InterruptedException if action == "linger" => }
  }
}
