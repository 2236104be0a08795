// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.ownership

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8

import scala.concurrent.{ExecutionContext, Future}
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import sparkdstl.log.error.ProtocolErrors
import sparkdstl.log.request.{Creation, QueryStorage, StorageClient}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Read, Replace}

/**
 * Marks a configured base path as the log of one checkpoint: two queries, or a checkpoint and its copy, would delete each
 * other's files. A log inside the checkpoint needs no mark.
 *
 * The mark holds the id of the query, and the path of its checkpoint at the start of the last run. If the path differs, the
 * checkpoint was copied if it still exists at the old path (`checkpointAt` gives its storage), and moved otherwise.
 */
final class BasePathOwner(storage: QueryStorage, checkpointAt: Path => StorageClient) {
  private val logger = LoggerFactory.getLogger(classOf[BasePathOwner])
  private final val MaxLength = 64L * 1024
  private val mapper = new ObjectMapper
  import storage.{location, log, timeoutMillis}
  private implicit val executor: ExecutionContext = storage.runtime.executor

  private val file = location.file("owner.json")
  private val here = location.root.toString

  /** Creates or checks the mark. Fails if the base path belongs to another checkpoint or cannot be written to. */
  def claim(): Future[Unit] =
    if (location.configuredBase.isEmpty) Future.unit
    else queryId(location.root).flatMap {
      case None => Future.unit
      case Some(query) => read().flatMap {
          case None => create(query)
          case Some(owner) if owner.query != query => refuse(owner.query, query)
          case Some(Owner(_, Some(there))) if there != here => move(query, there)
          case Some(_) => Future.unit
        }
    }

  private def create(query: String): Future[Unit] = {
    val content = mark(query)
    log.create(file, Payload(content), timeoutMillis)(tail => java.util.Arrays.equals(tail.bytes, content))
      .flatMap(_.asFuture).recoverWith { case e => Future.failed(ProtocolErrors.unusableBasePath(location.base, e)) }
      .flatMap {
        case Creation.Ours => Future.unit
        case _: Creation.Taken => read().flatMap(other => refuse(other.fold("of unknown id")(_.query), query))
      }
  }

  private def refuse(owner: String, query: String): Future[Unit] =
    Future.failed(ProtocolErrors.foreignBasePath(location.base, owner, query, file))

  private def move(query: String, from: String): Future[Unit] =
    queryId(new Path(from)).map(_.contains(query))
      .recoverWith { case NonFatal(e) =>
        Future.failed(ProtocolErrors.copiedCheckpoint(location.base, from, here, file, Some(e)))
      }.flatMap { isCopy =>
        if (isCopy) Future.failed(ProtocolErrors.copiedCheckpoint(location.base, from, here, file, None))
        else {
          logger.info(s"The checkpoint whose log is at ${location.base} has moved from $from to $here")
          log.run(Replace(file, Payload(mark(query))), timeoutMillis).flatMap(_.asFuture)
        }
      }

  private def mark(query: String): Array[Byte] =
    s"${mapper.createObjectNode().put("query", query).put("checkpoint", here)}\n".getBytes(UTF_8)

  private def read(): Future[Option[Owner]] =
    log.run(Read(file, MaxLength), timeoutMillis).flatMap(_.asFuture)
      .map(_.map(content => Owner(required(content, "query"), field(content, "checkpoint"))))
      .recoverWith { case NonFatal(e) => Future.failed(ProtocolErrors.unusableBasePath(location.base, e)) }

  /** The id in `<checkpoint>/metadata`, which Spark writes before a query's first batch and never changes. */
  private def queryId(checkpoint: Path): Future[Option[String]] =
    checkpointAt(checkpoint).run(Read(new Path(checkpoint, "metadata"), MaxLength), timeoutMillis).flatMap(_.asFuture)
      .map(_.map(required(_, "id")))

  private def field(content: Array[Byte], name: String): Option[String] =
    Option(mapper.readTree(content).get(name)).map(_.asText)

  private def required(content: Array[Byte], name: String): String =
    field(content, name).getOrElse(throw new IOException(s"it has no field $name"))

  private case class Owner(query: String, checkpoint: Option[String])
}
