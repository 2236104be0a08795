// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{BulkDelete, FileSystem, Path}

/**
 * Deletes objects in as few requests as the file system allows, and reports all failures. Uses the batch API for single objects
 * too, because other deletions need more requests: for a directory of that name, and for an empty parent.
 */
private[storage] final class ObjectDeletion(fileSystem: FileSystem, base: Path) {

  /** The maximum of objects per request. */
  val pageSize: Int =
    try {
      val bulk = fileSystem.createBulkDelete(base)
      try math.max(bulk.pageSize(), 1)
      finally bulk.close()
    } catch {
      // Hadoop before 3.4.1 has no such method.
      case _: UnsupportedOperationException | _: LinkageError => 1
    }

  def delete(paths: Seq[Path]): Unit = {
    val qualified = paths.map(fileSystem.makeQualified)
    val failures =
      if (pageSize == 1) qualified.flatMap(deleteOne)
      else {
        val (below, elsewhere) = qualified.partition(isBelowBase)
        inBatches(base, below) ++ elsewhere.groupBy(_.getParent).flatMap((inBatches _).tupled)
      }
    failures.headOption.foreach { first =>
      failures.tail.foreach(first.addSuppressed)
      throw first
    }
  }

  private def inBatches(directory: Path, paths: Seq[Path]): Seq[IOException] =
    if (paths.isEmpty) Nil
    else {
      val bulk = fileSystem.createBulkDelete(directory)
      try paths.grouped(bulk.pageSize()).toVector.flatMap(deletePage(bulk, _))
      finally bulk.close()
    }

  private def isBelowBase(path: Path): Boolean =
    path.toUri.getPath.startsWith(base.toUri.getPath.stripSuffix("/") + "/")

  private def deletePage(bulk: BulkDelete, page: Seq[Path]): Seq[IOException] =
    try {
      val failures = bulk.bulkDelete(page.asJava).asScala.toVector
      failures.map(failure => new IOException(s"cannot delete ${failure.getKey}: ${failure.getValue}"))
    } catch {
      case e: IOException => Seq(new IOException(s"cannot delete ${objects(page)}", e))
    }

  private def objects(page: Seq[Path]): String =
    if (page.size == 1) page.head.toString else s"${page.size} objects from ${page.head} on"

  private def deleteOne(path: Path): Option[IOException] =
    try
      if (!fileSystem.delete(path, false) && fileSystem.exists(path)) Some(new IOException(s"cannot delete $path"))
      else None
    catch {
      case _: FileNotFoundException => None
      case e: IOException => Some(new IOException(s"cannot delete $path", e))
    }
}
