package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.CompletableFuture

import scala.collection.mutable

import sparkdstl.log.format.{SegmentKey, SegmentPart}

import org.apache.spark.sql.execution.streaming.state.dstl.SealedPart._

/** A segment of a batch whose bytes all have a place: in data files, or here to be written into the batch log. */
private[dstl] final case class DurableSegment(key: SegmentKey, parts: Vector[Either[Array[Byte], SegmentPart]])

/**
 * What the tasks of one run have promised for its batches and what has become durable of it. The driver's side of seals.
 *
 * A batch is open until the barrier closes it; a seal for a closed batch is refused. Of several seals for one segment
 * (task retries, speculation) the last one that is durable wins; with checkpoint ids, attempts differ in their keys
 * and the commit entry tells which counts. Thread-safe.
 *
 * @param inlineBudget how many inline bytes may be held for the batches that are not yet committed
 */
private[dstl] final class BatchSeals(inlineBudget: Long) {
  private type Ticket = (String, Long)

  private final class Attempt(val executor: String, val parts: Vector[SealedPart])

  // All guarded by this.
  private val attempts = mutable.HashMap.empty[SegmentKey, Vector[Attempt]]
  private val reports = mutable.HashMap.empty[Ticket, Either[String, SegmentPart]]
  private val lostExecutors = mutable.HashMap.empty[String, String]
  private var inlineHeld = 0L
  private var closedBatch = -1L
  private var waiting: Option[(Vector[SegmentKey], CompletableFuture[Unit])] = None

  /** Takes a promise. */
  def seal(request: SealRequest): SealReply = synchronized {
    val inline = request.parts.collect { case Inline(bytes) => bytes.length.toLong }.sum
    if (request.key.batch <= closedBatch)
      SealReply.Refused(s"batch ${request.key.batch} is closed; batch $closedBatch was the last")
    else if (inline > 0 && inlineHeld + inline > inlineBudget) SealReply.OverBudget
    else {
      inlineHeld += inline
      lostExecutors.remove(request.executor)
      val attempt = new Attempt(request.executor, request.parts)
      attempts.updateWith(request.key)(earlier => Some(earlier.getOrElse(Vector.empty) :+ attempt))
      SealReply.Accepted
    }
  }

  /** Takes word of how an upload ended. */
  def report(report: UploadReport): Unit = {
    synchronized(reports.put((report.executor, report.ticket), report.result)): Unit
    completeIfSettled()
  }

  /** What the executor had not yet uploaded is lost. */
  def executorLost(executor: String, reason: String): Unit = {
    synchronized(lostExecutors.put(executor, reason)): Unit
    completeIfSettled()
  }

  /** Refuses seals for `batch` from now on and tells what was sealed for it. */
  def close(batch: Long): Vector[SegmentKey] = synchronized {
    closedBatch = math.max(closedBatch, batch)
    keysOf(batch)
  }

  /** What was sealed for `batch` so far. */
  def keysOf(batch: Long): Vector[SegmentKey] = synchronized {
    attempts.keysIterator.filter(_.batch == batch).toVector.sortBy(_.relativePath)
  }

  /** Executors that still hold bytes of these segments. */
  def holders(keys: Vector[SegmentKey]): Set[String] = synchronized {
    keys.filterNot(isSettled).flatMap(attempts(_)).filter(attempt => pendingIn(attempt).nonEmpty)
      .map(_.executor).filterNot(lostExecutors.contains).toSet
  }

  /** Completes as soon as each segment is either durable or lost. One caller at a time. */
  def whenSettled(keys: Vector[SegmentKey]): CompletableFuture[Unit] = {
    val result = new CompletableFuture[Unit]
    synchronized { waiting = Some((keys, result)) }
    completeIfSettled()
    result
  }

  /** The segments, or for those that are lost the reason. To be called once they are settled. */
  def resolve(keys: Vector[SegmentKey]): Vector[Either[(SegmentKey, String), DurableSegment]] = synchronized {
    keys.map { key =>
      attempts(key).reverseIterator.flatMap(durable(key, _)).nextOption()
        .toRight(key -> attempts(key).iterator.flatMap(failure).nextOption().getOrElse("not durable"))
    }
  }

  /** Not durable and not lost, either. */
  def unsettled(keys: Vector[SegmentKey]): Vector[SegmentKey] = synchronized(keys.filterNot(isSettled))

  /** Data files named by attempts for `batch` that are not among `used`: nobody will ever read them. */
  def unusedFiles(batch: Long, used: Set[String]): Set[String] = synchronized {
    attempts.iterator.filter(_._1.batch <= batch).flatMap(_._2).flatMap(attempt =>
      attempt.parts.flatMap(place(attempt, _))
    )
      .flatMap(_.file).toSet -- used
  }

  /** Forgets everything about the batches up to `batch`. */
  def forget(batch: Long): Unit = synchronized {
    closedBatch = math.max(closedBatch, batch)
    attempts.keysIterator.filter(_.batch <= batch).toVector.foreach { key =>
      attempts.remove(key).toVector.flatten.foreach { attempt =>
        attempt.parts.foreach {
          case Inline(bytes) => inlineHeld -= bytes.length
          case Pending(ticket, _) => reports.remove((attempt.executor, ticket))
          case _ =>
        }
      }
    }
  }

  /** Inline bytes held now. */
  def inlineBytes: Long = synchronized(inlineHeld)

  private def completeIfSettled(): Unit = {
    val settled = synchronized {
      waiting.filter { case (keys, _) => keys.forall(isSettled) }.map { case (_, result) =>
        waiting = None
        result
      }
    }
    settled.foreach(_.complete(()))
  }

  private def isSettled(key: SegmentKey): Boolean = {
    val of = attempts(key)
    durable(key, of.last).nonEmpty || of.forall(attempt => durable(key, attempt).nonEmpty || failure(attempt).nonEmpty)
  }

  private def durable(key: SegmentKey, attempt: Attempt): Option[DurableSegment] = {
    val parts = attempt.parts.map {
      case Inline(bytes) => Some(Left(bytes))
      case part => place(attempt, part).map(Right(_))
    }
    if (parts.forall(_.nonEmpty)) Some(DurableSegment(key, parts.flatten)) else None
  }

  private def place(attempt: Attempt, part: SealedPart): Option[SegmentPart] = part match {
    case Stored(stored) => Some(stored)
    case Pending(ticket, _) => reports.get((attempt.executor, ticket)).flatMap(_.toOption)
    case Inline(_) => None
  }

  private def pendingIn(attempt: Attempt): Vector[Long] =
    attempt.parts.collect { case Pending(ticket, _) if !reports.contains((attempt.executor, ticket)) => ticket }

  private def failure(attempt: Attempt): Option[String] = {
    val failed = attempt.parts.iterator.collect {
      case Pending(ticket, _) => reports.get((attempt.executor, ticket)).flatMap(_.left.toOption)
    }.flatten.nextOption()
    failed.orElse(
      if (pendingIn(attempt).nonEmpty)
        lostExecutors.get(attempt.executor).map(why => s"executor ${attempt.executor}: $why")
      else None
    )
  }
}
