package sparkdstl.log.failpoints

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths}

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{DataFileReader, LogLayout}
import sparkdstl.log.request.{QueryStorage, StorageClient}
import sparkdstl.log.storage.ObjectTail
import sparkdstl.log.storage.StorageOperation.{Create, Put}

/**
 * Fail points as the environment variable `SPARK_DSTL_FAIL_POINTS` describes them: `name=action[@batch]`, several separated by
 * `;`. Actions: `pause` blocks the thread until there is a file `name.resume`, so that a test can do from outside what it wants,
 * such as kill the process; `linger` is a pause that swallows interrupts, like the code of a zombie: a task that goes on after it
 * was killed; `fail` throws an `IOException`. Each fires once over all processes: it first creates the file `name` in the
 * directory `SPARK_DSTL_FAIL_POINT_DIR`, with the process id as content, and does nothing if that file is there already.
 */
final class ScriptedFailPoints(points: String) extends FailPoints {
  import ScriptedFailPoints._

  private def directory: Path = Paths.get(sys.env.getOrElse("SPARK_DSTL_FAIL_POINT_DIR", "."))

  private val rules: Seq[Rule] = points.split(';').toVector.map {
    case Form(name, action, batch) => Rule(name, action, Option(batch).map(_.toLong))
    case other => throw new IllegalArgumentException(s"not a fail point: $other")
  }

  override def hit(name: String, batch: Long): Unit =
    rules.find(rule => rule.name == name && rule.batch.forall(_ == batch)).foreach { rule =>
      if (createMarker(name)) run(rule)
    }

  override def before[T](name: String, batch: Long)(action: => Future[T]): Future[T] =
    Future(hit(name, batch))(ownThread).flatMap(_ => action)(ownThread)

  override def beforeCommitEntries(storage: QueryStorage): QueryStorage =
    storage.copy(checkpoint = storage.checkpoint.pausing {
      case Create(path, _) if path.getParent == storage.location.commits =>
        LogLayout.parseBatch(path.getName).fold(Future.unit)(before("driver.before-commit-entry", _)(Future.unit))
      case _ => Future.unit
    })

  override def beforeUploads(storage: QueryStorage): StorageClient = storage.log.pausing {
    case Put(path, content) =>
      val name = storage.location.base.toUri.relativize(path.toUri).getPath
      val index = DataFileReader.read(path, name, ObjectTail(content.toArray, content.length))
      val batch = index.toOption.flatMap(_.entries.headOption).map(_.key.batch)
      batch.fold(Future.unit)(before("executor.before-upload", _)(Future.unit))
    case _ => Future.unit
  }

  private def createMarker(name: String): Boolean =
    try {
      // Written aside and linked, so that a process that sees the marker also sees its content.
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

private object ScriptedFailPoints {
  private val PollMillis = 20L
  private val Form = """([\w.-]+)=(pause|linger|fail)(?:@(\d+))?""".r

  private final case class Rule(name: String, action: String, batch: Option[Long])

  private val ownThread: ExecutionContext = ExecutionContext.fromExecutor { task =>
    val thread = new Thread(task, "dstl-fail-point")
    thread.setDaemon(true)
    thread.start()
  }
}
