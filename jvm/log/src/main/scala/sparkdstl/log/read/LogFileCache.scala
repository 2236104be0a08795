package sparkdstl.log.read

import java.io.FileNotFoundException
import java.util.concurrent.{CompletableFuture, CompletionException, Executor}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import sparkdstl.log.error.LogErrors
import sparkdstl.log.format.{LogFileIndex, LogFileReader, SegmentEntry, SegmentKey}
import sparkdstl.log.storage.LogStorage

/**
 * A log file as far as it is in memory.
 *
 * @param content the whole file, unless it is too large to keep
 * @param index   of a batch log; `None` for data files, whose index nobody needs
 */
final class CachedLogFile(
    val path: Path,
    val length: Long,
    val content: Option[Array[Byte]],
    val index: Option[LogFileIndex]
) {
  private lazy val entries: Map[SegmentKey, SegmentEntry] =
    index.fold(Map.empty[SegmentKey, SegmentEntry])(_.entries.iterator.map(entry => entry.key -> entry).toMap)

  def entry(key: SegmentKey): Option[SegmentEntry] = entries.get(key)

  /** Bytes of memory it takes, roughly. */
  def weight: Long = content.fold(0)(_.length) + index.fold(0L)(_.entries.size * CachedLogFile.EntryWeight)
}

object CachedLogFile {
  private val EntryWeight = 250L
}

/**
 * Log files in memory, each fetched once however many readers want it at the same time; the least recently used go when
 * there are more than `maxSize` bytes of them, and any that nobody has read for `idleTimeoutMs`.
 *
 * @param workers   run the fetches; their number bounds how many requests are under way
 * @param nowMillis the time
 */
final class LogFileCache(
    storage: LogStorage,
    base: Path,
    maxSize: Long,
    idleTimeoutMs: Long,
    workers: Executor,
    nowMillis: () => Long
) {

  /** Files larger than this are read in ranges and not kept. */
  val maxFileSize: Long = math.min(maxSize / 4, Int.MaxValue.toLong / 2)

  private final class Slot(val file: CompletableFuture[CachedLogFile], var usedAt: Long)

  // Guarded by this; in the order of use, the least recently used first.
  private val slots = mutable.LinkedHashMap.empty[String, Slot]

  /**
   * The log file at `file` (relative to the base path), from memory or from storage.
   *
   * @param withIndex whether its index is wanted: true for batch logs
   * @throws java.io.FileNotFoundException if there is no such object
   */
  def get(file: String, withIndex: Boolean): CachedLogFile =
    try request(file, withIndex).join()
    catch {
      case e: CompletionException if e.getCause != null => throw e.getCause
    }

  /**
   * Starts fetching `files` in the background, as far as they can be expected to fit beside what is held; failures show
   * when somebody wants the file.
   */
  def prefetch(files: Seq[String], withIndex: Boolean): Unit = synchronized {
    val (loaded, coming) = slots.valuesIterator.toVector.partition(_.file.isDone)
    val weights = loaded.map(weightOf)
    val expected = if (weights.isEmpty) 0L else weights.max
    var room = maxSize - weights.sum - coming.size * expected
    files.filterNot(slots.contains).foreach { file =>
      if (room >= expected) {
        room -= expected
        request(file, withIndex): Unit
      }
    }
  }

  /** Lets go of files that nobody has read for the idle timeout. To be called now and then. */
  def evictIdle(): Unit = synchronized {
    val oldest = nowMillis() - idleTimeoutMs
    slots.filterInPlace((_, slot) => slot.usedAt > oldest || !slot.file.isDone): Unit
  }

  /** Bytes held now. */
  def weight: Long = synchronized(slots.valuesIterator.map(slot => weightOf(slot)).sum)

  private def request(file: String, withIndex: Boolean): CompletableFuture[CachedLogFile] = synchronized {
    slots.remove(file) match {
      case Some(slot) if !slot.file.isCompletedExceptionally =>
        slot.usedAt = nowMillis()
        slots.put(file, slot)
        slot.file
      case _ =>
        val result = new CompletableFuture[CachedLogFile]
        slots.put(file, new Slot(result, nowMillis()))
        workers.execute(() => fetch(file, withIndex, result))
        result
    }
  }

  private def fetch(file: String, withIndex: Boolean, result: CompletableFuture[CachedLogFile]): Unit =
    try {
      result.complete(load(new Path(base, file), withIndex))
      evictLeastRecentlyUsed()
    } catch {
      case NonFatal(e) => result.completeExceptionally(e): Unit
      case fatal: Throwable =>
        result.completeExceptionally(fatal)
        throw fatal
    }

  private def load(path: Path, withIndex: Boolean): CachedLogFile = {
    val length = storage.length(path)
    if (length <= maxFileSize) {
      val content = storage.readRange(path, 0, length.toInt)
      if (withIndex) new CachedLogFile(path, length, Some(content), Some(LogFileReader.readIndex(path, content)))
      else {
        LogFileReader.checkHeader(path, content)
        new CachedLogFile(path, length, Some(content), None)
      }
    } else if (withIndex) new CachedLogFile(path, length, None, Some(LogIndexLoader.load(storage, path, length)))
    else new CachedLogFile(path, length, None, None)
  }

  private def evictLeastRecentlyUsed(): Unit = synchronized {
    var excess = slots.valuesIterator.map(weightOf).sum - maxSize
    val oldestFirst = slots.iterator.takeWhile(_ => excess > 0).toVector
    oldestFirst.foreach { case (file, slot) =>
      if (excess > 0 && slot.file.isDone) {
        excess -= weightOf(slot)
        slots.remove(file)
      }
    }
  }

  private def weightOf(slot: Slot): Long =
    if (slot.file.isDone && !slot.file.isCompletedExceptionally) slot.file.join().weight else 0L
}

/** Reads segments out of log files through a cache, every byte checked before it is handed out. */
final class SegmentReader(storage: LogStorage, base: Path, cache: LogFileCache) {

  /** The batch log `file`; a missing one is an error, since only batch logs that a commit entry names are asked for. */
  def batchLog(file: String, wantedBy: String): CachedLogFile =
    try cache.get(file, withIndex = true)
    catch { case e: FileNotFoundException => throw LogErrors.missingObject(new Path(base, file), wantedBy, e) }

  /** The bytes of one part of the segment `key`, which batch log `log` names. */
  def part(log: CachedLogFile, key: SegmentKey, index: Int): Array[Byte] = {
    val part = log.entry(key).get.parts(index)
    val path = part.file.fold(log.path)(new Path(base, _))
    val bytes =
      try read(log, part.file, path, part.offset, part.length)
      catch { case e: FileNotFoundException => throw LogErrors.missingObject(path, s"segment ${key.relativePath}", e) }
    LogFileReader.verify(path, key, part, bytes)
    bytes
  }

  private def read(log: CachedLogFile, file: Option[String], path: Path, offset: Long, length: Int): Array[Byte] = {
    val holder = file.fold(log)(cache.get(_, withIndex = false))
    holder.content match {
      case Some(content) if offset + length <= content.length =>
        java.util.Arrays.copyOfRange(content, offset.toInt, offset.toInt + length)
      case Some(content) =>
        throw LogErrors.damaged(path, content.length.toLong, s"it ends before ${offset + length}")
      case None =>
        // Checked before memory is taken: the index that says so is damaged, or another file has this name.
        if (offset + length > holder.length)
          throw LogErrors.damaged(path, holder.length, s"it ends before ${offset + length}")
        storage.readRange(path, offset, length)
    }
  }
}
