package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{BulkDelete, FileSystem, Path}

/** Deletes many objects in as few requests as the file system allows, and reports all that failed. */
private[storage] final class ObjectDeletion(fileSystem: FileSystem, base: Path) {

  /** How many objects below the base go with one request. */
  lazy val pageSize: Int =
    try {
      val bulk = fileSystem.createBulkDelete(base)
      try math.max(bulk.pageSize(), 1)
      finally bulk.close()
    } catch { case _: UnsupportedOperationException => 1 }

  def delete(paths: Seq[Path]): Unit = {
    val qualified = paths.map(fileSystem.makeQualified)
    val failures = openBulk(qualified) match {
      case Some(bulk) =>
        try qualified.grouped(bulk.pageSize()).toSeq.flatMap(deletePage(bulk, _))
        finally bulk.close()
      case None => qualified.flatMap(deleteOne)
    }
    failures.headOption.foreach { first =>
      failures.tail.foreach(first.addSuppressed)
      throw first
    }
  }

  private def openBulk(paths: Seq[Path]): Option[BulkDelete] =
    if (paths.size < 2 || !paths.forall(isBelowBase) || pageSize == 1) None
    else Some(fileSystem.createBulkDelete(base))

  private def isBelowBase(path: Path): Boolean =
    path.toUri.getPath.startsWith(base.toUri.getPath.stripSuffix("/") + "/")

  private def deletePage(bulk: BulkDelete, page: Seq[Path]): Seq[IOException] =
    try {
      val failures = bulk.bulkDelete(page.asJava).asScala.toSeq
      failures.map(failure => new IOException(s"cannot delete ${failure.getKey}: ${failure.getValue}"))
    } catch {
      case e: IOException => Seq(new IOException(s"cannot delete ${page.size} objects from ${page.head} on", e))
    }

  private def deleteOne(path: Path): Option[IOException] =
    try
      if (!fileSystem.delete(path, false) && fileSystem.exists(path)) Some(new IOException(s"cannot delete $path"))
      else None
    catch {
      case _: FileNotFoundException => None
      case e: IOException => Some(new IOException(s"cannot delete $path", e))
    }
}
