package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.Await
import scala.concurrent.duration._
import scala.util.Try

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import sparkdstl.log.retry.{Attempts, AttemptsFailed, RetryingExecutor}
import sparkdstl.log.storage.LogStorage

/**
 * Single objects, written with the retries and hedges that the options ask for. The caller waits, up to `timeoutMs`; an
 * attempt that is still silent then may publish its object later all the same.
 */
private[dstl] final class RetriedWrites(executor: RetryingExecutor, timeoutMs: Long) {

  /**
   * Publishes `content`, replacing what is there. All attempts write the same bytes to the same name, so it does not
   * matter which comes last.
   */
  def replace(storage: LogStorage, path: Path, content: Array[Byte]): Unit =
    await(path)(() => storage.put(path, content))

  /**
   * Publishes `content` unless something is there. An attempt that finds just this content succeeds if it can be ours:
   * because another attempt has begun, before or after it, and may have published it; or because the content names its
   * writer.
   *
   * @throws org.apache.hadoop.fs.FileAlreadyExistsException if something else is there
   */
  def create(storage: LogStorage, path: Path, content: Array[Byte], namesItsWriter: Boolean): Unit = {
    val begun = new AtomicInteger
    await(path) { () =>
      begun.incrementAndGet()
      try storage.putIfAbsent(path, content)
      catch {
        case e: FileAlreadyExistsException =>
          val canBeOurs = namesItsWriter || begun.get > 1
          if (!canBeOurs || !java.util.Arrays.equals(storage.read(path, RetriedWrites.MaxExisting), content)) throw e
      }
    }
  }

  private def await(path: Path)(attempt: () => Unit): Unit = {
    val attempts = new Attempts[Unit] {
      override val name: String = s"writing $path"
      override def run(number: Int): Unit = attempt()
      override def lost(number: Int, outcome: Try[Unit]): Unit = ()
    }
    try Await.result(executor.run(attempts), timeoutMs.millis): Unit
    catch {
      case _: TimeoutException => throw DstlErrors.writeTimedOut(path, timeoutMs)
      case e: AttemptsFailed =>
        throw (e.getCause match {
          case conflict: FileAlreadyExistsException => conflict
          case _ => DstlErrors.writeFailed(path, e)
        })
    }
  }
}

private object RetriedWrites {

  /** In bytes; what is longer is not compared but an error. Commit entries with checkpoint ids can be long. */
  private val MaxExisting = 256L * 1024 * 1024
}
