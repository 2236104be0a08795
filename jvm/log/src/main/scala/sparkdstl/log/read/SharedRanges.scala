package sparkdstl.log.read

import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.runtime.ProtocolRuntime
import sparkdstl.log.storage.ObjectTail

/**
 * Ranges in which several stores have something: fetched once for all stores of an executor. Data files never change and
 * their names never come again, so what one run has read is good for the next.
 *
 * @param disk keeps ranges that memory evicts
 */
final class SharedRanges(
    memory: MemoryCache[RangePlace, Array[Byte]],
    disk: Option[DiskCache],
    runtime: ProtocolRuntime
) {
  private implicit val executor: ExecutionContext = runtime.executor

  /** The range, from memory, from the local disk or as `fetch` reads it from storage. */
  def get(place: RangePlace)(fetch: => Future[Array[Byte]]): Future[Array[Byte]] = memory.get(place) {
    disk.fold(fetch) {
      _.get(place)(fetch.map(bytes => Some(ObjectTail(bytes, place.range.length.toLong)))).map(_.get.bytes)
    }
  }

  /** What was handed out is not what was written. */
  def forget(place: RangePlace): Unit = {
    memory.forget(place)
    disk.foreach(_.forget(place))
  }
}
