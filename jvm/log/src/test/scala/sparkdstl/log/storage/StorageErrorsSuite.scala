package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.fs.FileAlreadyExistsException
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

class StorageErrorsSuite extends AnyFunSuite {

  /** As S3A's service exceptions are: the status is a method's answer. */
  class ServiceException(status: Int) extends IOException("service said no") {
    def statusCode(): Int = status
  }

  class RemoteFileChangedException extends IOException("changed")

  private val taken = new FileAlreadyExistsException("x")
  private val denied = new AccessControlException("no")
  private val missing = new FileNotFoundException("x")
  private val tooLong = new IOException("/x: File name too long")

  private def service(statuses: Int*): Seq[IOException] = statuses.map(new ServiceException(_))

  private def wrapped(error: IOException): IOException = new IOException("wrapped", error)

  private def all(errors: Seq[Throwable])(holds: Throwable => Boolean): Unit =
    errors.foreach(error => assert(holds(error), error))

  test("class, status method or message show a conflict, also in a cause") {
    val told =
      new IOException("At least one of the pre-conditions did not hold (Service: S3, Status Code: 412, Request ID: 1)")
    val classes = Seq(taken, new java.nio.file.FileAlreadyExistsException("x"), new RemoteFileChangedException)
    all(classes ++ service(412) ++ Seq(told, wrapped(new ServiceException(412))))(StorageErrors.meansAlreadyExists)
    all(service(503) ++ Seq(new IOException("412 bytes missing"), missing))(!StorageErrors.meansAlreadyExists(_))
  }

  test("a request that met another one under way is no conflict") {
    assert(StorageErrors.meansConcurrentRequest(new ServiceException(409)))
    assert(!StorageErrors.meansAlreadyExists(new ServiceException(409)))
    assert(!StorageErrors.meansConcurrentRequest(new ServiceException(412)))
  }

  test("permanent errors are not retried, and passing errors are") {
    val lasting = Seq(taken, denied, new java.nio.file.AccessDeniedException("no"), new IllegalArgumentException("bad"))
    // As S3A's analytics streams say it.
    val inWords = "Server error accessing s3://b/x, request failed with: Access Denied. (Service: S3, Status Code: 403)"
    all(lasting ++ service(401) ++ Seq(tooLong, new IOException(inWords)))(!StorageErrors.isRetryable(_))
    all(
      service(503) ++ Seq(missing, new IOException("reset"), new IOException(null: String))
    )(StorageErrors.isRetryable)
  }

  test("storage's own refusals are definite") {
    val refusals = Seq(taken, denied, missing, tooLong, new UnsupportedOperationException, new AttemptNotMade("none"))
    all(refusals ++ service(400, 412) :+ wrapped(new ServiceException(403)))(StorageErrors.isDefinite)
  }

  test("no answer, or an answer about another request, leaves a write unknown") {
    val none = Seq(new IOException("reset"), new java.io.InterruptedIOException, wrapped(missing), new OutOfMemoryError)
    all(none ++ service(500, 503, 408, 409))(!StorageErrors.isDefinite(_))
  }

  /** As S3A's is. */
  class UnknownStoreException extends FileNotFoundException("no such bucket")

  test("a missing bucket is not a missing object") {
    assert(StorageErrors.meansMissing(missing))
    all(Seq(new UnknownStoreException, new IOException("x")))(!StorageErrors.meansMissing(_))
  }
}
