// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.IOException
import java.util.{Collection => JavaCollection, List => JavaList, Map => JavaMap}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs._
import org.apache.hadoop.fs.statistics.IOStatistics

import sparkdstl.testing.DirectWriteFileSystem

/** Local files that appear on close, of which no stream can be written to its end. */
private final class FailingStreams(fault: FailingStreams.Fault) extends DirectWriteFileSystem("file") {
  override protected def writing(): Unit = failIf(FailingStreams.OnWrite)

  override protected def publishing(path: Path, bytes: Long)(publish: => Unit): Unit = {
    failIf(FailingStreams.OnClose)
    publish
  }

  private def failIf(injected: FailingStreams.Fault): Unit =
    if (fault == injected) throw new IOException(s"injected ${fault.when}")
}

private object FailingStreams {
  sealed abstract class Fault(val when: String)
  case object OnWrite extends Fault("on writing")
  case object OnClose extends Fault("on closing")
}

/** A file system that deletes in pages, and fails for some names. */
private final class BulkDeleting(size: Int, failing: Set[String]) extends RawLocalFileSystem {
  val pages = ArrayBuffer.empty[Seq[Path]]
  val bases = ArrayBuffer.empty[Path]

  override def createBulkDelete(base: Path): BulkDelete = {
    bases += base
    pagesBelow(base)
  }

  private def pagesBelow(base: Path): BulkDelete = new BulkDelete {
    override def pageSize(): Int = size

    override def basePath(): Path = base

    override def bulkDelete(paths: JavaCollection[Path]): JavaList[JavaMap.Entry[Path, String]] = {
      pages += paths.asScala.toSeq
      paths.asScala.filter(path => failing(path.getName)).map(JavaMap.entry(_, "injected")).toList.asJava
    }

    override def close(): Unit = ()

    override def getIOStatistics: IOStatistics = null
  }
}

/** An object store with objects of ten bytes whose reads fail; further reads of a failed stream report it as closed. */
private final class FailingReads extends RawLocalFileSystem {
  var readsAfterError = 0

  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == CommonPathCapabilities.ABORTABLE_STREAM

  override def getFileStatus(path: Path): FileStatus = new FileStatus(10, false, 1, 1, 0, path)

  override def open(path: Path, bufferSize: Int): FSDataInputStream = new FSDataInputStream(new Stream)

  private final class Stream extends FSInputStream {
    private var failed = false

    override def read(): Int = {
      if (failed) {
        readsAfterError += 1
        throw new IOException("Stream is closed")
      }
      failed = true
      throw new IOException("no route to host")
    }

    override def read(buffer: Array[Byte], offset: Int, length: Int): Int = read()

    override def close(): Unit = throw new IOException("Stream is closed")

    override def seek(position: Long): Unit = if (failed) throw new IOException("Stream is closed")

    override def getPos: Long = 0

    override def seekToNewSource(target: Long): Boolean = false
  }
}

/** Refuses either the listing of all files below a directory or that of one directory. */
private final class OneListing(flat: Boolean) extends RawLocalFileSystem {
  override def hasPathCapability(path: Path, capability: String): Boolean =
    capability == CommonPathCapabilities.ABORTABLE_STREAM && flat

  override def listFiles(path: Path, recursive: Boolean): RemoteIterator[LocatedFileStatus] =
    if (flat) super.listFiles(path, recursive) else throw new IOException("asks for the blocks of each file")

  override def listStatusIterator(path: Path): RemoteIterator[FileStatus] =
    if (flat) throw new IOException("takes a request per directory") else super.listStatusIterator(path)
}
