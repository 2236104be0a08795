package org.apache.spark.sql.execution.streaming.state.dstl.store

import java.io.{ByteArrayOutputStream, OutputStream}

import org.apache.hadoop.fs.{FSDataInputStream, Path}

import sparkdstl.log.format.SegmentKind

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.state.dstl.files.SeekableBytes

/** What Spark calls a snapshot's zip, and the checksum file that it keeps beside it. */
private[dstl] object SnapshotNames {
  private val ChecksumEnding = SegmentKind.Snapshot.suffix + ".crc"

  def isZip(file: Path): Boolean = file.getName.endsWith(SegmentKind.Snapshot.suffix)

  def isChecksum(file: Path): Boolean = file.getName.endsWith(ChecksumEnding)

  /** The zip to which a checksum file belongs. */
  def zipOf(checksum: Path): Path = new Path(checksum.getParent, checksum.getName.stripSuffix(".crc"))
}

/**
 * Which snapshot the calling thread is loading: its zip is opened again by those who do not know that its content is here,
 * and verified.
 */
private[dstl] object LoadedSnapshot {
  private val loaded = new ThreadLocal[(String, Array[Byte], Boolean)]

  /** @param isVerified whether the content was checked already, against a checksum of the log's own */
  def during[T](file: Path, content: Array[Byte], isVerified: Boolean)(body: => T): T = {
    loaded.set((file.toUri.getPath, content, isVerified))
    try body
    finally loaded.remove()
  }

  def open(file: Path): Option[FSDataInputStream] = Option(loaded.get).flatMap { case (path, content, isVerified) =>
    val asked = file.toUri.getPath
    if (path == asked) Some(content)
    // Spark wants one, or warns of its absence.
    else if (isVerified && s"$path.crc" == asked) Some(SnapshotChecksum.of(content))
    else None
  }.map(bytes => new FSDataInputStream(new SeekableBytes(bytes)))
}

/** The snapshot that the calling thread packs: its zip is wanted in memory, and goes nowhere else. */
private[dstl] object PackedSnapshot {
  private val packing = new ThreadLocal[ByteArrayOutputStream]

  /** The zip that `save` writes. */
  def zipOf(save: => Unit): Array[Byte] = {
    val content = new ByteArrayOutputStream
    packing.set(content)
    try save
    finally packing.remove()
    content.toByteArray
  }

  def isPacking: Boolean = packing.get != null

  /** Takes what is written of a snapshot's zip while one is packed. */
  def create(file: Path): Option[CancellableFSDataOutputStream] = Option(packing.get).collect {
    case content if SnapshotNames.isZip(file) => new HeldStream(content)
    case _ if SnapshotNames.isChecksum(file) => discarding()
  }

  /** For a file that need not exist. */
  def discarding(): CancellableFSDataOutputStream = new HeldStream(OutputStream.nullOutputStream())

  private final class HeldStream(to: OutputStream) extends CancellableFSDataOutputStream(to) {
    override def cancel(): Unit = ()
  }
}
