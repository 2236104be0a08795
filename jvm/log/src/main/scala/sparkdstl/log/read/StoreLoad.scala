// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import org.apache.hadoop.fs.{FSDataInputStream, Path}

/**
 * One load of a version of a store: the content of the files that Spark opens meanwhile, and counts of what they held. Used by
 * one thread. `base` is the task attempt that left the local state, if one did. Without `progress` the local state is that
 * version.
 *
 * Spark creates a store's file manager by its class name, from a configuration that all stores of an operator share. So no
 * argument can pass the load from the store to the file manager, and a thread-local does. The log has no other.
 */
final class StoreLoad(val base: Option[Long], val progress: Option[RecoveryProgress#LoadingStore]) {

  // Changelogs and snapshots that were read from the log, and their bytes.
  var segments = 0L
  var bytes = 0L

  /** Change records, from the log or from plain files. */
  var records = 0L

  /** Bytes of the changelog that was opened during the load. */
  var written = 0L

  /** Why the newest snapshot could not be loaded; None if it was not tried, or is loaded. */
  def failure: Option[Throwable] = firstFailure

  private var firstFailure = Option.empty[Throwable]
  private var snapshot = Option.empty[LoadedSnapshot]

  /** Whether the local state is that version. */
  def isLocal: Boolean = progress.isEmpty

  /** Runs `body`, which loads that snapshot. */
  def loading[T](snapshot: LoadedSnapshot)(body: => T): T = {
    this.snapshot = Some(snapshot)
    try body
    finally this.snapshot = None
  }

  /** Notes that a snapshot could not be loaded. Spark tries the newest first. */
  def failed(error: Throwable): Unit = firstFailure = firstFailure.orElse(Some(error))

  /** The content of a file of the snapshot that is being loaded, if it is in memory. */
  def open(file: Path): Option[FSDataInputStream] =
    snapshot.flatMap(_.contents.get(file.toUri.getPath)).map(bytes =>
      new FSDataInputStream(SegmentInputStream.of(bytes))
    )

  /** The download of an immutable file of the snapshot that is being loaded. */
  def downloadOf(name: String): Option[Download] = snapshot.flatMap(_.downloads.get(name))
}

object StoreLoad {
  private val running = new ThreadLocal[StoreLoad]

  /** The load that the calling thread runs. */
  def current: Option[StoreLoad] = Option(running.get)

  def during[T](load: StoreLoad)(body: => T): T = {
    running.set(load)
    try body
    finally running.remove()
  }

  /** Runs `body` in the load that the calling thread runs, or else in a new one. */
  def within[T](body: StoreLoad => T): T = current match {
    case Some(load) => body(load)
    case None =>
      val load = new StoreLoad(None, None)
      during(load)(body(load))
  }
}

/**
 * The files of a snapshot that is being loaded: the content of its zip and of the zip's checksum file by their paths, and the
 * downloads of its immutable files by their names on storage.
 */
final case class LoadedSnapshot(contents: Map[String, Array[Byte]], downloads: Map[String, Download])
