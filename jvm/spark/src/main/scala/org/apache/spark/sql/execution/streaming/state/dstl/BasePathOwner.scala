package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import sparkdstl.log.storage.LogStorage

import org.apache.spark.internal.Logging

/**
 * Marks a configured base path as one checkpoint's, so that two queries cannot take each other's log for theirs, nor a
 * checkpoint and its copy, which would delete what the other needs. A log inside the checkpoint needs no mark.
 *
 * The mark names the query, and where its checkpoint was when it last began a run. A checkpoint that is elsewhere now has
 * been moved if there is none left where it was, and copied if there is.
 *
 * @param storageOf the storage that holds a path
 */
private[dstl] final class BasePathOwner(paths: QueryPaths, storageOf: Path => LogStorage, writes: RetriedWrites)
    extends Logging {
  import BasePathOwner._

  private val file = new Path(paths.base, FileName)
  private val here = paths.root.toString

  /** @throws sparkdstl.log.error.DstlException if the base path belongs to another checkpoint or cannot be written to */
  def claim(): Unit =
    for {
      _ <- paths.configuredBase
      query <- queryId(paths.root, paths.checkpoint)
    } read() match {
      case None => create(query)
      case Some(owner) if owner.query != query => throw DstlErrors.foreignBasePath(paths.base, owner.query, query)
      case Some(Owner(_, Some(there))) if there != here => move(query, there)
      case Some(_) =>
    }

  private def create(query: String): Unit =
    try writes.create(paths.log, file, mark(query), namesItsWriter = true)
    catch {
      case _: FileAlreadyExistsException =>
        throw DstlErrors.foreignBasePath(paths.base, read().fold("of unknown id")(_.query), query)
      case NonFatal(e) => throw DstlErrors.unusableBasePath(paths.base, e)
    }

  private def move(query: String, from: String): Unit = {
    val copied =
      try {
        val there = new Path(from)
        queryId(there, storageOf(there)).contains(query)
      } catch { case NonFatal(e) => throw DstlErrors.copiedCheckpoint(paths.base, from, here, file, Some(e)) }
    if (copied) throw DstlErrors.copiedCheckpoint(paths.base, from, here, file, None)
    logInfo(s"The checkpoint whose log is at ${paths.base} has moved from $from to $here")
    writes.replace(paths.log, file, mark(query))
  }

  private def mark(query: String): Array[Byte] =
    s"${mapper.createObjectNode().put("query", query).put("checkpoint", here)}\n".getBytes(UTF_8)

  private def read(): Option[Owner] =
    try {
      val content = paths.log.read(file, MaxLength)
      Some(Owner(field(content, "query").getOrElse(throw missing("query")), field(content, "checkpoint")))
    } catch {
      case _: FileNotFoundException => None
      case NonFatal(e) => throw DstlErrors.unusableBasePath(paths.base, e)
    }

  /** The id in `<checkpoint>/metadata`, which Spark writes before a query's first batch and never changes. */
  private def queryId(checkpoint: Path, storage: LogStorage): Option[String] =
    try {
      val content = storage.read(new Path(checkpoint, "metadata"), MaxLength)
      Some(field(content, "id").getOrElse(throw missing("id")))
    } catch { case _: FileNotFoundException => None }
}

private object BasePathOwner {
  private val FileName = "owner.json"
  private val MaxLength = 64L * 1024
  private val mapper = new ObjectMapper

  private final case class Owner(query: String, checkpoint: Option[String])

  private def field(content: Array[Byte], name: String): Option[String] =
    Option(mapper.readTree(content).get(name)).map(_.asText)

  private def missing(name: String): IOException = new IOException(s"it has no field $name")
}
