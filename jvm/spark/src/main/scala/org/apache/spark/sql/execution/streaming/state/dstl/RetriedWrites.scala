package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import sparkdstl.log.retry.AttemptsFailed
import sparkdstl.log.storage.LogStorage

/** Single objects, written with retries and hedges. */
private[dstl] final class RetriedWrites(requests: RetriedRequests) {

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

  private def await(path: Path)(attempt: () => Unit): Unit =
    try requests.run(s"writing $path")(attempt)
    catch {
      case _: TimeoutException => throw DstlErrors.writeTimedOut(path, requests.timeoutMs)
      case e: AttemptsFailed =>
        throw (e.getCause match {
          case conflict: FileAlreadyExistsException => conflict
          case _ => DstlErrors.writeFailed(path, e)
        })
    }
}

private object RetriedWrites {

  /** In bytes; what is longer is not compared but an error. Commit entries with checkpoint ids can be long. */
  private val MaxExisting = 256L * 1024 * 1024
}
